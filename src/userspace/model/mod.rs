// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler did between two readings of its counters. Plain numbers:
//! this room knows neither BPF nor a terminal.

mod describe;
mod field;
mod hist;
mod rates;
mod snapshot;
mod task;

pub use describe::{COUNTERS, Counter, CpuMetrics, Group, Metrics};
pub use field::{Described, Field, Kind, Value};
pub use hist::{Hist, SLOTS};
pub use rates::{MULTIPLIER_MAX, load, power};
pub use snapshot::{Begin, EVENTS, Event, Lost, Snapshot, What};
pub use task::{CauseMetrics, History, POINTS, Placed, Point, Task, TaskMetrics, cause_name};

use std::collections::BTreeMap;

use serde::Serialize;

use crate::abi::{CpuKind, NR_STATS};

/// One look at the scheduler. All `*_ns` of a reading are of one clock.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// When it was taken, ns.
    pub now_ns: u64,
    /// When the scheduler began, ns.
    pub started_ns: u64,
    /// Number of changes of the policy since the daemon began.
    pub policy_seq: u32,
    /// The CPUs that are in one of the two sets, by id.
    pub cpus: Vec<CpuReading>,
}

/// One CPU in a reading. Times count from the scheduler's begin.
#[derive(Clone, Debug)]
pub struct CpuReading {
    /// CPU id.
    pub id: usize,
    /// Which set it is in.
    pub kind: CpuKind,
    /// Number of its last-level cache. The NRT CPUs of one share a queue.
    pub llc: usize,
    /// Compute capacity, up to 1 for the greatest CPU.
    pub capacity: f64,
    /// Weight of the runnable ext tasks of this RT CPU, or of all NRT CPUs of its cache; 100
    /// is one task of nice 0.
    pub weight: u64,
    /// Its real-time share.
    pub rt: RtShare,
    /// Time in ext tasks, ns.
    pub ext_ns: u64,
    /// Does an ext task run here?
    pub ext_running: bool,
    /// The task that runs here, unless the CPU is idle.
    pub running: Option<Running>,
    /// Time of tasks that could leave in kernel sections here, ns; RT CPUs only.
    pub residence_ns: u64,
    /// The longest of these sections, ns.
    pub residence_max_ns: u64,
    /// Tasks in its own queue.
    pub own_queued: u64,
    /// Tasks in the queue that it shares with the other NRT CPUs of its cache.
    pub shared_queued: u64,
    /// Event counters, by `enum artis_stat`.
    pub stat: [u64; NR_STATS],
}

/// The real-time share of a CPU (src/bpf/policy/rt_share.h).
#[derive(Clone, Copy, Debug, Default)]
pub struct RtShare {
    /// Exponential average at `updated_ns`, 0 to 1.
    pub avg: f64,
    /// Has a real-time task run here since `updated_ns`?
    pub in_rt: bool,
    /// Time of the last switch to or from a real-time task, ns.
    pub updated_ns: u64,
    /// Time in real-time tasks up to `updated_ns`, ns.
    pub total_ns: u64,
}

/// The task on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Thread id.
    pub pid: u32,
    /// Its name, made printable.
    pub comm: String,
    /// Is it of a real-time class?
    pub realtime: bool,
}

/// What the scheduler remembers of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TaskReading {
    /// Times that it had to leave an RT CPU since the scheduler began, by what it was about
    /// to do: `call openat`, `fault`; `other` for causes beyond the first few.
    pub evictions: BTreeMap<String, u64>,
}

/// A task's name made fit for a terminal: whatever is not printable ASCII,
/// escape sequences above all, becomes `?`.
pub fn printable(comm: &[u8]) -> String {
    comm.iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '?' })
        .collect()
}
