// SPDX-License-Identifier: GPL-2.0-only
//! A scene on a machine: every amount in steps of the computing kernel, every random
//! choice made, every task numbered. The same scene, calibration and scale give the same
//! plan, and a task's work is its plan and nothing else.

mod build;
pub mod calibration;
mod expect;
mod links;

pub use build::build;
pub use expect::{Expectation, Need, Right, expect};

use serde::{Deserialize, Serialize};

use crate::scene::{CallKind, Cgroup, Cpus, Sched};

/// Steps of the computing kernel in one iteration (`loop`). A step is one dependent
/// multiply, add, shift and xor: some 2 ns at 3 GHz. The thesis's comment on annex B
/// (RT tasks "take most of the power": 10 tasks to 1:1:1, that is 90 %) fits iterations of
/// 9 µs; 4096 steps are near that today.
pub const STEPS_PER_LOOP: u64 = 4096;

/// How the runner was told to read a scene.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Scale {
    /// Steps in a microsecond: measured, cached or given.
    pub steps_per_us: f64,
    /// Steps of an iteration: [`STEPS_PER_LOOP`], or fitted by `--iteration-us`.
    pub steps_per_loop: f64,
    /// The total work of each phase, and its `duration_ms`, times this (`--scale`); bursts,
    /// sleeps and periods stay.
    pub work: f64,
}

/// A scene ready to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scene's name.
    pub scene: String,
    /// Its reason.
    pub why: String,
    /// What a good scheduler shows.
    pub good: String,
    /// By which measures it was made.
    pub scale: Scale,
    /// The run is stopped after so long.
    pub limit_us: Option<u64>,
    /// The CPUs that the scene means to be RT CPUs, as a list.
    pub rt_cpus: Option<Cpus>,
    /// Names of the groups, by index.
    pub groups: Vec<String>,
    /// By index; groups in order, in each its tasks in order.
    pub tasks: Vec<Task>,
    /// Buffers between producers and consumers, by index.
    pub links: Vec<Link>,
}

/// One task; by default one that does nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Index of its group.
    pub group: usize,
    /// Its number in the group, from 0.
    pub nth: u32,
    /// Policy.
    pub sched: Sched,
    /// Where it may run; `None`: everywhere.
    pub cpus: Option<Cpus>,
    /// Its cgroup.
    pub cgroup: Option<Cgroup>,
    /// From the signal to its begin.
    pub start_us: u64,
    /// Memory it walks through in every iteration.
    pub memory_kb: u64,
    /// Bursts and sleeps vary by up to so much.
    pub jitter_pct: u32,
    /// For its jitter.
    pub seed: u64,
    /// Indexes of the links it takes from.
    pub takes: Vec<usize>,
    /// Indexes of the links it posts to, after each burst.
    pub posts: Vec<usize>,
    /// One after another.
    pub phases: Vec<Phase>,
}

/// A bounded buffer from one task to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Task index.
    pub from: usize,
    /// Task index.
    pub to: usize,
    /// Items that fit.
    pub items: u32,
    /// Bytes of an item.
    pub item_bytes: u32,
}

/// A phase in steps.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// `u64::MAX`: no bound.
    pub work_steps: u64,
    /// Ends after so long.
    pub duration_us: Option<u64>,
    /// How the computing is cut.
    pub rhythm: Rhythm,
    /// Calls in between.
    pub call: Option<Call>,
}

/// A call every so many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// What is called.
    pub kind: CallKind,
    /// Steps between two.
    pub every_steps: u64,
}

/// [`crate::scene::Rhythm`] in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rhythm {
    /// Without a pause.
    Steady,
    /// A sleep after each burst.
    Sleep {
        /// Length of a burst.
        every_steps: u64,
        /// Length of a sleep.
        sleep_us: u64,
    },
    /// A burst each period.
    Periodic {
        /// From begin to begin.
        period_us: u64,
        /// Length of a burst.
        burst_steps: u64,
        /// From the period's begin.
        deadline_us: u64,
    },
    /// A burst for each round of items.
    Items {
        /// Length of a burst.
        burst_steps: u64,
    },
}
