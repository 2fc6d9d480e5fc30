// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler did between two readings of its counters. Plain numbers:
//! this room knows neither BPF nor a terminal.

mod describe;
mod field;
mod figures;
mod happened;
mod hist;
mod live;
mod rates;
mod reading;
mod snapshot;
mod task;

pub use describe::{COUNTERS, Counter, CpuMetrics, Group, Metrics};
pub use field::{Described, Field, Kind, Value};
pub use figures::PERIOD_SHIFT;
pub use hist::{Hist, SLOTS};
pub use live::Model;
pub use rates::{MULTIPLIER_MAX, load, power};
pub use reading::{CpuReading, Reading, RtShare, Running};
pub use snapshot::{Begin, CpuTimes, EVENTS, Event, Lost, Snapshot, What};
pub use task::{CauseMetrics, History, POINTS, Point, Task, TaskMetrics, cause_name};

use std::collections::BTreeMap;

use serde::Serialize;

/// What the scheduler remembers of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskReading {
    /// Times that it had to leave an RT CPU since the scheduler began, by what it was about
    /// to do: `call openat`, `fault`; `other` for causes beyond the first few.
    pub evictions: BTreeMap<String, u64>,
    /// Priority as an RT1+ task, 1 to 98; 0: it is none.
    pub rt1: u64,
    /// It takes turns with others of this priority.
    pub rt1_rr: bool,
    /// It may use RT CPUs, if its affinity lets it.
    pub rt_cpus: bool,
    /// All that by `scx_artis ctl class` or `run`, which no rule overrules.
    pub by_hand: bool,
}

/// The sum, or the greatest number where that is more: a recording may say what it likes.
pub(crate) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A task's name made fit for a terminal: whatever is not printable ASCII,
/// escape sequences above all, becomes `?`.
pub fn printable(comm: &[u8]) -> String {
    comm.iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' })
        .collect()
}
