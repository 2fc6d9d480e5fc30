// SPDX-License-Identifier: GPL-2.0-only
//! Every key that a scene may have, in one table: the readers check by it, their messages
//! quote it, and docs/scenes.md is printed from it.

use super::value::Kind;

/// Where a key may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// TOML: before the first `[[group]]`.
    Scene,
    /// TOML: in a `[[group]]`.
    Group,
    /// TOML: in a `[[group.phase]]`, or in a `[[group]]` that has none.
    Phase,
    /// In a block of annex B's format.
    Block,
}

/// A known key.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// Where it may stand.
    pub place: Place,
    /// What its value may be.
    pub kind: Kind,
    /// What it is without the key.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// Most tasks of a scene: beyond it, it is a mistake rather than a scenario.
pub const MOST_TASKS: u32 = 4096;
/// Most iterations or microseconds of computing: 11 days.
const MOST_WORK: f64 = 1e12;
/// A day.
const MOST_MS: i128 = 86_400_000;
/// An hour.
const MOST_US: i128 = 3_600_000_000;
/// The kernel refuses longer SCHED_DEADLINE periods: sched_deadline_period_max_us.
const MOST_DL_US: i128 = 1 << 22;

const LOOPS: Kind = Kind::Number { unit: "iterations", min: 0.001, max: MOST_WORK };
const US: Kind = Kind::Number { unit: "µs", min: 0.1, max: MOST_WORK };

const fn whole(unit: &'static str, min: i128, max: i128) -> Kind {
    Kind::Whole { unit, min, max }
}

const fn key(
    place: Place,
    name: &'static str,
    kind: Kind,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, place, kind, default, meaning }
}

use Place::{Block, Group, Phase, Scene};

/// The table.
#[rustfmt::skip]
pub static KEYS: &[Key] = &[
    key(Scene, "why", Kind::Text, "required", "The question that the scene asks of a scheduler."),
    key(Scene, "good", Kind::Text, "none", "What a good scheduler shows here, in figures that the report prints."),
    key(Scene, "seed", whole("", 0, u64::MAX as i128), "1", "All that is random comes from it and the task's index: the same seed, the same run."),
    key(Scene, "limit_ms", whole("ms", 1, MOST_MS), "none", "The run is stopped after so long; `--scale` leaves it alone."),
    key(Scene, "rt_cpus", Kind::CpuList, "none", "The CPUs that the scene means to be RT CPUs: for `{rt_cpus}` in `--under`. Without effect on the tasks."),
    key(Scene, "group", Kind::Tables, "required", "`[[group]]`: tasks with equal properties."),

    key(Group, "name", Kind::Name, "required", "Unique in the scene."),
    key(Group, "count", whole("tasks", 1, MOST_TASKS as i128), "1", "Number of tasks."),
    key(Group, "sched", Kind::Policy, "NORMAL", "Scheduling policy."),
    key(Group, "nice", whole("", -20, 19), "0", "Of NORMAL, BATCH and EXT."),
    key(Group, "priority", whole("", 1, 99), "required by FIFO and RR", "Real-time priority; 99 is the most urgent."),
    key(Group, "dl_runtime_us", whole("µs", 2, MOST_DL_US), "required by DEADLINE", "CPU time of each period."),
    key(Group, "dl_deadline_us", whole("µs", 2, MOST_DL_US), "`dl_period_us`", "Counted from the period's begin: runtime <= deadline <= period."),
    key(Group, "dl_period_us", whole("µs", 100, MOST_DL_US), "required by DEADLINE", "From begin to begin. The bounds are the kernel's."),
    key(Group, "cpus", Kind::CpuList, "all", "Where the tasks may run. CPUs that the machine lacks are left out."),
    key(Group, "cpu_mask", Kind::CpuMask, "all", "The same as a mask; either of both."),
    key(Group, "cgroup", Kind::Cgroup, "the run's own", "cgroup (v2) below the run's own, in which the tasks are put."),
    key(Group, "cpu_weight", whole("", 1, 10_000), "the kernel's 100", "cpu.weight of the cgroup."),
    key(Group, "start_us", whole("µs", 0, MOST_US), "0", "Begins so long after the signal that starts all tasks."),
    key(Group, "spread_us", whole("µs", 0, MOST_US), "0", "Begins a random time below this later, different for each task."),
    key(Group, "memory_kb", whole("KiB", 0, 16_777_216), "0", "Memory that each task walks through, a cache line at a time, in every iteration."),
    key(Group, "jitter_pct", whole("%", 0, 100), "0", "Bursts and sleeps vary by up to so much, each way, evenly."),
    key(Group, "follows", Kind::Groups, "none", "Groups whose items the tasks wait for: one of each producer before each burst."),
    key(Group, "buffer", whole("items", 1, 4096), "4", "Items that fit between a producer and a task of this group; a full buffer blocks the producer."),
    key(Group, "item_kb", whole("KiB", 0, 65_536), "1", "Size of an item: written by the producer, read by this group's task."),
    key(Group, "repeat", whole("times", 1, 4096), "1", "The list of phases is gone through so often."),
    key(Group, "phase", Kind::Tables, "one, of the keys in the group", "`[[group.phase]]`: what the tasks do, one after another."),

    key(Phase, "loop", LOOPS, "no bound", "Work to do in all: iterations of the computing kernel, the same on every machine."),
    key(Phase, "compute_us", US, "no bound", "Work to do in all: as many iterations as take so long on an idle CPU."),
    key(Phase, "duration_ms", whole("ms", 1, MOST_MS), "no bound", "The phase ends after so long, its work done or not."),
    key(Phase, "sloop", LOOPS, "no sleep", "Work between two sleeps."),
    key(Phase, "sloop_us", US, "no sleep", "The same in time."),
    key(Phase, "sleep_us", whole("µs", 0, MOST_US), "required by `sloop`", "Length of each sleep."),
    key(Phase, "period_us", whole("µs", 1, MOST_US), "none", "A burst begins so often, by the clock."),
    key(Phase, "burst", LOOPS, "none", "Work of a period, or for a round of items of the groups that are followed."),
    key(Phase, "burst_us", US, "none", "The same in time."),
    key(Phase, "duty_pct", Kind::Number { unit: "%", min: 0.001, max: 100.0 }, "none", "The same as a share of `period_us`."),
    key(Phase, "burst_deadline_us", whole("µs", 1, MOST_US), "`period_us`", "A burst that is not done so long after its period's begin is a miss."),
    key(Phase, "call", Kind::Call, "sysinfo, with `iloop`", "The endangering system call made in between."),
    key(Phase, "iloop", LOOPS, "no call", "Work between two calls."),
    key(Phase, "iloop_us", US, "no call", "The same in time."),

    key(Block, "loop", whole("iterations", 1, MOST_WORK as i128), "required", "Work to do in all."),
    key(Block, "sloop", whole("iterations", 1, MOST_WORK as i128), "no sleep", "Work between two sleeps."),
    key(Block, "sleep", whole("µs", 0, MOST_US), "0", "Length of each sleep."),
    key(Block, "iloop", whole("iterations", 1, MOST_WORK as i128), "no call", "Work between two endangering system calls (sysinfo)."),
    key(Block, "sched", Kind::Policy, "NORMAL", "Scheduling policy; DEADLINE needs the TOML form."),
    key(Block, "priority", whole("", -20, 99), "0", "Nice or real-time priority, by `sched`."),
    key(Block, "cpu_mask", Kind::CpuMask, "all", "Where the task may run."),
];

/// The keys of a place.
pub fn of(place: Place) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |k| k.place == place)
}

/// The known word nearest to this one, if any is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.78;
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(&word, &k.to_lowercase()), k))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}
