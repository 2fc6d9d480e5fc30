// SPDX-License-Identifier: GPL-2.0-only
//! What one run showed. This is the JSON form; all other outlets are made from it.
//! Times are in ns unless the name says otherwise. `None`: not known here, and
//! [`Run::missing`] says why.

pub mod comparison;
pub mod figures;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Scale};

/// Version of the JSON form: changes when a field is renamed, removed or means something
/// else; new fields do not change it.
pub const SCHEMA: u32 = 1;

/// One run of one scene under one scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The scene's name.
    pub scene: String,
    /// Why the scene exists.
    pub why: String,
    /// What a good scheduler shows there.
    pub good: String,
    /// Which scheduler was in charge.
    pub scheduler: Scheduler,
    /// Where.
    pub machine: Machine,
    /// How amounts of work were read.
    pub scale: Scale,
    /// From the start signal to the end of the last task.
    pub makespan_ns: u64,
    /// The run was stopped by its limit or by a signal.
    pub cut: bool,
    /// Whole-package energy (RAPL) from start to end, µJ.
    pub energy_uj: Option<u64>,
    /// By the plan's index.
    pub tasks: Vec<Task>,
    /// By the plan's index.
    pub groups: Vec<Group>,
    /// Every online CPU, ascending.
    pub cpus: Vec<Cpu>,
    /// Who ran where, by time; empty if it could not be recorded.
    pub timeline: Vec<Span>,
    /// What may make these figures worth less.
    pub warnings: Vec<Warning>,
    /// Which figures are absent, and why.
    pub missing: Vec<Missing>,
    /// How the figures that can be had in more than one way were had this time, by field:
    /// `cpu_time_ns`, `timeline`, `migrations`. What each is worth: docs/measures.md.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

impl Run {
    /// Of no time, nowhere, in which no task did anything: where a plan is not really run.
    #[must_use]
    pub fn empty(plan: &Plan) -> Self {
        Self {
            schema: SCHEMA,
            scene: plan.scene.clone(),
            why: plan.why.clone(),
            good: plan.good.clone(),
            scheduler: Scheduler::default(),
            machine: Machine::default(),
            scale: plan.scale,
            makespan_ns: 0,
            cut: false,
            energy_uj: None,
            tasks: Vec::new(),
            groups: Vec::new(),
            cpus: Vec::new(),
            timeline: Vec::new(),
            warnings: Vec::new(),
            missing: Vec::new(),
            sources: BTreeMap::new(),
        }
    }
}

/// The scheduler in charge of normal tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Scheduler {
    /// As the user named it (`--under`), or what was found.
    pub name: String,
    /// /sys/kernel/sched_ext/root/ops; `None`: the kernel's own.
    pub ops: Option<String>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`.
    pub version: String,
    /// /proc/cpuinfo's model name.
    pub cpu: String,
    /// Online CPUs.
    pub cpus: u32,
}

/// One task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Index of its group.
    pub group: usize,
    /// Its number in the group.
    pub nth: u32,
    /// From its begin to its end.
    pub wall_ns: u64,
    /// From the start signal to its begin (`start_us`, the spread, and being late).
    pub begun_ns: u64,
    /// On a CPU, by the kernel's own account.
    pub cpu_ns: u64,
    /// Runnable but not on a CPU.
    pub wait_ns: Option<u64>,
    /// Steps computed.
    pub steps: u64,
    /// Time on each CPU where it ran; absent: not known.
    pub cpu_time_ns: Option<BTreeMap<u32, u64>>,
    /// Gave the CPU up by itself.
    pub voluntary_switches: u64,
    /// Was preempted.
    pub involuntary_switches: u64,
    /// Moved from one CPU to another.
    pub migrations: Option<u64>,
    /// System calls seen by the kernel in the measured part.
    pub calls_seen: Option<u64>,
    /// System calls that the scene asked for (sleeps, waits and calls), as the task
    /// counted them itself.
    pub calls_made: u64,
    /// Times that scx_artis moved it off an RT CPU, by cause.
    pub evictions: Option<BTreeMap<String, u64>>,
    /// From the moment a sleep should have ended to the task's own next instruction.
    pub wakeup: Option<Latency>,
    /// Periods begun, and those whose burst was late or left out.
    pub periods: u64,
    /// Of these, missed.
    pub misses: u64,
    /// From the making of the oldest item to the end of the burst that used it: at tasks
    /// that nobody follows.
    pub item_age: Option<Latency>,
    /// It did not finish: the limit, a signal, or what went wrong.
    pub cut: Option<String>,
}

/// A distribution. All in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// How many values.
    pub count: u64,
    /// The least.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub stdev_ns: f64,
    /// Half are not above.
    pub p50_ns: u64,
    /// 90 % are not above.
    pub p90_ns: u64,
    /// 99 % are not above.
    pub p99_ns: u64,
    /// 99.9 % are not above.
    pub p999_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// A group of equal tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Tasks that finished: the figures are about these.
    pub finished: u32,
    /// Tasks in all.
    pub count: u32,
    /// Execution time: `wall_ns`.
    pub wall: Summary,
    /// CPU time: `cpu_ns`.
    pub cpu: Summary,
    /// Jain's fairness index of the tasks' speeds (steps / wall), 1/n to 1.
    pub jain: f64,
    /// All wake-ups of its tasks.
    pub wakeup: Option<Latency>,
    /// All ages of items at its tasks.
    pub item_age: Option<Latency>,
    /// Periods of all tasks.
    pub periods: u64,
    /// Of these, missed.
    pub misses: u64,
}

/// Of a figure over the tasks of a group. The deviation is that of a sample (n-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation, 0 for one task.
    pub stdev_ns: f64,
    /// The least.
    pub min_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// One CPU from start to end. The shares are of the makespan, 0 to 1, and sum to at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// Its number.
    pub cpu: u32,
    /// Idle, waiting for input or output included.
    pub idle: f64,
    /// Interrupts and soft interrupts.
    pub irq: f64,
    /// The scene's FIFO, RR and DEADLINE tasks.
    pub rt: Option<f64>,
    /// The scene's other tasks.
    pub fair: Option<f64>,
    /// All else: others' tasks, the kernel, a hypervisor.
    pub other: Option<f64>,
}

/// A task was on a CPU for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// Task index.
    pub task: u32,
    /// CPU.
    pub cpu: u32,
    /// From the start signal.
    pub from_ns: u64,
    /// From the start signal.
    pub to_ns: u64,
}

/// Teaches: what was seen, why it matters, what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A short fixed word for programs: `noisy`, `throttled`, `frequency`, ...
    pub code: String,
    /// For people.
    pub text: String,
}

impl Warning {
    /// One of the kind `code`.
    #[must_use]
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into() }
    }
}

/// A figure that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The figure, as its field is named: `cpu_time_ns`.
    pub what: String,
    /// Why, and what would make it possible.
    pub why: String,
}
