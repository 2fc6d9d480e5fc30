// SPDX-License-Identifier: GPL-2.0-only
//! What a scene says, whichever file format it came from: groups of equal tasks
//! and what each of them does. Pure data; [`crate::plan`] makes work of it.
//!
//! The way of a file: [`read`] guesses the format; `toml_file` or `annexb` cut it into
//! `fields`, each checked by its entry in [`keys`]; `group` and `phase` say what the keys
//! mean together, `whole` what the groups do. What is wrong is gathered on the way
//! ([`Mistakes`]), all of it. `convert` is the way back.

mod annexb;
mod convert;
mod fields;
mod group;
pub mod keys;
mod mistake;
mod names;
mod phase;
mod read;
mod reference;
mod shipped;
mod toml_file;
mod value;
mod whole;

use std::collections::BTreeSet;

pub use convert::convert;
pub use mistake::{Mistake, Mistakes, render};
pub use read::{Format, parse, read};
pub use reference::reference;
pub use shipped::{find, shipped};

use serde::{Deserialize, Serialize};

/// A scenario: groups of tasks that all start on one signal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// The file's name without its ending.
    pub name: String,
    /// Why the scene exists. Empty only for annex B's format, which has no place for it.
    pub why: String,
    /// What a good scheduler shows here; empty if the scene does not say.
    pub good: String,
    /// Everything random in a scene (spread, jitter) comes from this and the task's index.
    pub seed: u64,
    /// The run is stopped after so long; tasks that had not finished are said to be cut.
    pub limit_ms: Option<u64>,
    /// The CPUs that the scene means to be RT CPUs: for schedulers that want to be told
    /// (`{rt_cpus}` in `--under`), without effect on the tasks.
    pub rt_cpus: Option<Cpus>,
    /// In the file's order; never empty.
    pub groups: Vec<Group>,
}

/// Tasks with equal properties. In annex B's format all blocks with equal values are one
/// group, whose place is that of the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Unique in the scene.
    pub name: String,
    /// Number of tasks, 1 or more.
    pub count: u32,
    /// Policy, with its parameter.
    pub sched: Sched,
    /// Where the tasks may run; `None`: everywhere. CPUs that the machine lacks are left
    /// out, as sched_setaffinity(2) does; a set without any CPU is refused at the plan.
    pub cpus: Option<Cpus>,
    /// The cgroup (v2) the tasks are put in, below the run's own.
    pub cgroup: Option<Cgroup>,
    /// Begins so long after the signal.
    pub start_us: u64,
    /// and a random time below this later.
    pub spread_us: u64,
    /// Memory that each task walks through, a cache line at a time, in every iteration.
    pub memory_kb: u64,
    /// Bursts and sleeps vary by up to so much, each way, evenly: 0 to 100.
    pub jitter_pct: u32,
    /// Names of the groups whose items the tasks wait for: one item of each of its
    /// producers before each burst of an [`Rhythm::Items`] phase. Of n producers for m
    /// consumers, producer i feeds consumer i·m/n; with fewer producers than consumers,
    /// consumer j takes from producer j·n/m, which posts to each of its consumers.
    pub follows: Vec<String>,
    /// Items that fit between a producer and a consumer; a full buffer blocks the producer.
    pub buffer: u32,
    /// Bytes of an item, in KiB: written by the producer, read by the consumer.
    pub item_kb: u32,
    /// One after another; never empty.
    pub phases: Vec<Phase>,
}

/// What a task does until the phase's work is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Computing to do in all, sleeps and system calls not counted. `None`: no bound but
    /// `duration_ms` or, with [`Rhythm::Items`], the end of the items.
    pub work: Option<Amount>,
    /// The phase ends after so long, its work done or not.
    pub duration_ms: Option<u64>,
    /// How the computing is cut.
    pub rhythm: Rhythm,
    /// Endangering calls in between.
    pub call: Option<Call>,
}

/// An amount of computing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Iterations of the computing kernel ([`crate::actor::kernel`]): the same work on
    /// every machine.
    Loops(f64),
    /// As many iterations as take so long on an idle CPU, by the calibration.
    Us(f64),
}

/// How a phase's computing is cut into bursts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    /// Without a pause.
    Steady,
    /// Annex B's `sloop` and `sleep`: after each `every` of computing a sleep.
    Sleep {
        /// Computing between two sleeps.
        every: Amount,
        /// Length of the sleep.
        sleep_us: u64,
    },
    /// A burst at the begin of each period, by the clock; a burst that is not done at its
    /// deadline is a miss, and periods that begin meanwhile are left out and counted.
    Periodic {
        /// From begin to begin.
        period_us: u64,
        /// Computing of one period.
        burst: Amount,
        /// Counted from the period's begin; `period_us` unless told.
        deadline_us: u64,
    },
    /// A burst for each round of items of the groups that this one follows.
    Items {
        /// Computing of one round.
        burst: Amount,
    },
}

/// An endangering call every so often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// What is called.
    pub kind: CallKind,
    /// Computing between two calls.
    pub every: Amount,
}

/// Ways to enter the kernel. By name in scenes, as in [`CallKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// getppid(2): the cheapest.
    Getppid,
    /// sched_yield(2): harmless for scx_artis.
    Yield,
    /// sysinfo(2).
    Sysinfo,
    /// stat(2) of a path.
    Stat,
    /// openat(2) and close(2).
    Open,
    /// A byte through a pipe of its own: write(2) and read(2).
    Pipe,
    /// sendto(2) and recvfrom(2) over a UNIX socket pair of its own.
    Socket,
    /// mmap(2), touch and munmap(2) of 64 KiB.
    Mmap,
    /// mprotect(2) of a page, there and back.
    Mprotect,
    /// A page fault of user mode, without a call: madvise(2) makes it possible again
    /// every 64 pages.
    Fault,
    /// pwrite(2) of 64 KiB to a file that all tasks share: the inode's lock is contended.
    Lock,
    /// A child that exits at once: clone(2) and wait4(2).
    Fork,
}

/// A scheduling policy with its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sched {
    /// SCHED_OTHER; nice -20 to 19.
    Normal {
        /// Nice.
        nice: i32,
    },
    /// SCHED_BATCH; nice -20 to 19.
    Batch {
        /// Nice.
        nice: i32,
    },
    /// SCHED_IDLE.
    Idle,
    /// SCHED_EXT; nice -20 to 19. For schedulers that take such tasks only.
    Ext {
        /// Nice.
        nice: i32,
    },
    /// SCHED_FIFO; priority 1 to 99.
    Fifo {
        /// Priority.
        priority: u32,
    },
    /// SCHED_RR; priority 1 to 99.
    Rr {
        /// Priority.
        priority: u32,
    },
    /// SCHED_DEADLINE; runtime <= deadline <= period.
    Deadline {
        /// Of each period.
        runtime_us: u64,
        /// From the period's begin.
        deadline_us: u64,
        /// From begin to begin.
        period_us: u64,
    },
}

/// A cgroup below the run's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Relative path, as "background/low".
    pub path: String,
    /// cpu.weight, 1 to 10000; `None`: the kernel's 100. All groups that name one path
    /// name one weight, or none.
    pub weight: Option<u32>,
}

/// A set of CPU numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cpus(pub BTreeSet<u32>);

impl Scene {
    /// The seed of scenes that do not say theirs.
    pub const SEED: u64 = 1;
}

impl Default for Sched {
    /// Of a task that asks for nothing.
    fn default() -> Self {
        Self::Normal { nice: 0 }
    }
}

impl CallKind {
    /// All kinds with their names in scenes.
    pub const ALL: [(&'static str, Self); 12] = [
        ("getppid", Self::Getppid),
        ("yield", Self::Yield),
        ("sysinfo", Self::Sysinfo),
        ("stat", Self::Stat),
        ("open", Self::Open),
        ("pipe", Self::Pipe),
        ("socket", Self::Socket),
        ("mmap", Self::Mmap),
        ("mprotect", Self::Mprotect),
        ("fault", Self::Fault),
        ("lock", Self::Lock),
        ("fork", Self::Fork),
    ];

    /// Its name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("?", |(name, _)| name)
    }
}

impl std::fmt::Display for Cpus {
    /// As the kernel's cpulist: `0-2,5`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut sep = "";
        let mut rest = self.0.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut last = first;
            while rest.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{sep}{first}")?,
                _ => write!(f, "{sep}{first}-{last}")?,
            }
            sep = ",";
        }
        Ok(())
    }
}
