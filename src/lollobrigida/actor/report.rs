// SPDX-License-Identifier: GPL-2.0-only
//! What a task tells when it is over: everything it counted itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use super::histogram::{Histogram, latency};

/// One task's own account. Times are in ns from the start signal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its begin: `start_us`, the spread, and being late.
    pub begun_ns: u64,
    /// The end of its last phase.
    pub ended_ns: u64,
    /// Steps computed.
    pub steps: u64,
    /// Steps computed on each CPU where it was seen. See [`Report::time_per_cpu`].
    pub steps_per_cpu: BTreeMap<u32, u64>,
    /// System calls of the measured part.
    pub calls: Calls,
    /// Those between its end and its wait for the release, that wait included: a counter
    /// read while the task waits has seen them too.
    pub calls_after_end: u64,
    /// Page faults that the scene asked for.
    pub faults: u64,
    /// From the moment a sleep should have ended to the next instruction; `None`: the
    /// task never sleeps.
    pub wakeup: Option<Histogram>,
    /// From the making of the oldest item of a round, or of the oldest item that one was
    /// made of, to the end of the burst that used it; `None`: the task takes no items.
    pub item_age: Option<Histogram>,
    /// Items taken, of all links.
    pub items_taken: u64,
    /// Items posted, of all links.
    pub items_posted: u64,
    /// Periods begun and left out.
    pub periods: u64,
    /// Of these, late or left out.
    pub misses: u64,
    /// Of these, left out.
    pub left_out: u64,
    /// Who ran where, by the task's own look at the clock and its CPU once a chunk.
    pub spans: Vec<Span>,
    /// Pauses shorter than this are not seen in `spans`.
    pub span_gap_ns: u64,
    /// The list was full then: nothing is known of who ran where after it.
    pub spans_until_ns: Option<u64>,
    /// What could not be prepared as it should, in words.
    pub notes: Vec<String>,
    /// It was stopped before its work was done.
    pub cut: bool,
    /// What went wrong, in words.
    pub failed: Option<String>,
}

/// System calls that a task made in its measured part, by reason. Not in here: what a
/// child of `fork` calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// clock_nanosleep(2), the one before its begin included.
    pub sleeps: u64,
    /// futex(2) waits for items or for room.
    pub waits: u64,
    /// futex(2) wake-ups of neighbours in a pipeline.
    pub wakes: u64,
    /// The scene's endangering calls.
    pub scene: u64,
}

/// The task computed on a CPU for a while. In ns from the start signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// CPU.
    pub cpu: u32,
    /// Begin.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
}

impl Calls {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.sleeps + self.waits + self.wakes + self.scene
    }
}

impl Report {
    /// The task's time on each CPU, for machines that do not let the kernel tell: `cpu_ns`
    /// (schedstat) divided as the steps were. The error is one chunk, at most an iteration,
    /// for each migration; and time that is not computing (calls, memory) or CPUs of
    /// different speed are divided as if they were like the rest. Empty if no step was made.
    #[must_use]
    pub fn time_per_cpu(&self, cpu_ns: u64) -> BTreeMap<u32, u64> {
        let total: u64 = self.steps_per_cpu.values().sum();
        self.steps_per_cpu
            .iter()
            .map(|(cpu, steps)| {
                (*cpu, (u128::from(cpu_ns) * u128::from(*steps) / u128::from(total.max(1))) as u64)
            })
            .collect()
    }
}
