// SPDX-License-Identifier: GPL-2.0-only
//! Everything that an outlet may show, at the end of an interval.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CpuReading, Hist, Metrics, Task};

/// What a stream begins with: the machine, the policy, the clocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Begin {
    /// Version of the records that follow: `ARTIS_RECORD_VERSION`.
    pub version: u32,
    /// Version of scx_artis.
    pub program: String,
    /// Name of the scheduler as the kernel shows it.
    pub ops_name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Architecture, as Rust names it: numbers of system calls are of it.
    pub arch: String,
    /// Preemption model of the kernel.
    pub preemption: String,
    /// The RT CPUs as a list.
    pub rt_cpus: String,
    /// The NRT CPUs as a list.
    pub nrt_cpus: String,
    /// Thread and process id of the daemon.
    pub daemon_pid: u32,
    /// When the scheduler began: ns of its clock.
    pub started_ns: u64,
    /// When this was written: ns of the same clock.
    pub now_ns: u64,
    /// The time of day at `now_ns`: ms since 1970, UTC.
    pub now_unix_ms: u64,
    /// The policy constants by name, as `scx_artis ctl get` prints them, with their unit.
    pub policy: BTreeMap<String, String>,
    /// Seconds between two intervals.
    pub interval_s: f64,
}

/// Records that did not arrive, since the watch began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lost {
    /// The ring buffer was full.
    pub ring: u64,
    /// Events over the budget of their CPU.
    pub over_budget: u64,
    /// This viewer was too slow, or its stream is damaged.
    pub feed: u64,
}

/// Something that happened at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// When: seconds since the scheduler began.
    pub at_s: f64,
    /// The task.
    pub pid: u64,
    /// Its name.
    pub comm: String,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// An attempt made it leave an RT CPU.
    Eviction {
        /// What it was about to do.
        cause: String,
        /// The RT CPU.
        from: u64,
        /// The NRT CPU where it went on.
        to: u64,
        /// From the attempt to leaving the RT CPU, us.
        left_us: f64,
        /// From the attempt to running on the NRT CPU, us.
        arrived_us: f64,
    },
    /// It began to run on another CPU than before.
    Move {
        /// Name of the counter of what sent it there; empty: the kernel did.
        why: String,
        /// CPU before.
        from: u64,
        /// CPU now.
        to: u64,
        /// How long it had waited, us.
        wait_us: f64,
    },
    /// It ran.
    Run {
        /// Where.
        cpu: u64,
        /// For how long, us; [`Event::at_s`] is the end.
        run_us: f64,
        /// As a real-time task?
        rt: bool,
    },
    /// It came to an end.
    Exit,
    /// The daemon has something to say: a changed policy, lost records. `pid` is 0.
    Note {
        /// What.
        text: String,
    },
}

/// Events that are remembered beyond the last interval.
pub const EVENTS: usize = 4_096;

/// Times on one CPU, which do not fit into [`super::CpuMetrics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuTimes {
    /// Kernel sections of tasks that could leave, since the scheduler began; an RT CPU.
    pub residence: Hist,
    /// Evictions from the attempt to running here, while somebody watched; an NRT CPU.
    pub arrival: Hist,
}

impl From<&CpuReading> for CpuTimes {
    fn from(cpu: &CpuReading) -> Self {
        Self { residence: cpu.residence.clone(), arrival: cpu.arrival.clone() }
    }
}

/// Everything that an outlet may show, at the end of an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// What the stream began with; changes with the partition and the policy.
    pub begin: Arc<Begin>,
    /// The machine and its CPUs.
    pub machine: Metrics,
    /// Times on each CPU, by its id.
    pub cpu_times: BTreeMap<usize, CpuTimes>,
    /// The tasks by thread id, those that ended apart.
    pub tasks: BTreeMap<u64, Arc<Task>>,
    /// The last events, the oldest first: all of the last interval, and as many of those before
    /// as make [`EVENTS`].
    pub events: VecDeque<Event>,
    /// Events so far; the last of `events` is this one.
    pub nr_events: u64,
    /// What is missing.
    pub lost: Lost,
}

impl Snapshot {
    /// The time of day at the end of the interval: seconds since 1970, UTC.
    pub fn time_s(&self) -> f64 {
        let begin = &self.begin;
        let up_to_begin_s = begin.now_ns.saturating_sub(begin.started_ns) as f64 / 1e9;
        begin.now_unix_ms as f64 / 1e3 + self.machine.uptime_s - up_to_begin_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_goes_on_from_what_the_stream_began_with() {
        let begin = Begin {
            started_ns: 1_000_000_000,
            now_ns: 5_000_000_000,
            now_unix_ms: 1_700_000_000_500,
            ..Begin::default()
        };
        let machine = Metrics { uptime_s: 6.5, ..Metrics::default() };
        let snapshot = Snapshot { begin: Arc::new(begin), machine, ..Snapshot::default() };
        assert_eq!(snapshot.time_s(), 1_700_000_003.0);
    }
}
