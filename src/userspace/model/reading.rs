// SPDX-License-Identifier: GPL-2.0-only
//! One look at the counters of the CPUs; a frame of the stream, as JSON.

use serde::{Deserialize, Deserializer, Serialize};

use super::{Hist, SLOTS, total};
use crate::abi::{CpuKind, MAX_CPUS, NR_STATS};

/// One look at the scheduler. All `*_ns` of a reading are of one clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// When it was taken, ns.
    pub now_ns: u64,
    /// When the scheduler began, ns.
    pub started_ns: u64,
    /// Number of changes of the policy since the daemon began.
    pub policy_seq: u32,
    /// Has every task had a record since the reading before? Who had none is gone.
    pub every_task: bool,
    /// The CPUs that are in one of the two sets, by id.
    pub cpus: Vec<CpuReading>,
}

/// One CPU in a reading. Times count from the scheduler's begin.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuReading {
    /// CPU id.
    pub id: usize,
    /// Which set it is in.
    pub kind: CpuKind,
    /// Its group: the CPUs that share two queues.
    pub group: usize,
    /// Compute capacity, up to 1 for the greatest CPU.
    pub capacity: f64,
    /// Weight of the runnable ext tasks that may run here only; 100 is one task of nice 0.
    pub own_weight: u64,
    /// Weight of those of its group that are in the kernel or about to enter it.
    pub bound_weight: u64,
    /// Weight of those of its group that are expected to compute on.
    pub calm_weight: u64,
    /// Its real-time share.
    pub rt: RtShare,
    /// Time in real-time tasks that may run on NRT CPUs, too, ns; RT CPUs only.
    pub loose_ns: u64,
    /// Their endangering calls here.
    pub loose_calls: u64,
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
    /// What the last body that ended on this RT CPU was about, `enum artis_causes`; 0: none did.
    pub body_cause: u32,
    /// Tasks in its own queue.
    pub own_queued: u64,
    /// Tasks in the two queues of its group.
    pub shared_queued: u64,
    /// Kernel sections here by their length; RT CPUs only.
    pub residence: Hist,
    /// Evictions by the time from the attempt to running here, an NRT CPU; while somebody watches.
    pub arrival: Hist,
    /// Records that it wrote into the ring buffer.
    pub records: u64,
    /// Those that found no room there.
    pub records_lost: u64,
    /// Events that it did not write because its budget for the second was spent.
    pub records_over: u64,
    /// Event counters, by `enum artis_stat`.
    #[serde(deserialize_with = "counters")]
    pub stat: [u64; NR_STATS],
}

/// The real-time share of a CPU (src/bpf/policy/load.h).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Running {
    /// Thread id.
    pub pid: u32,
    /// Its name, made printable.
    pub comm: String,
    /// Is it of a real-time class?
    pub realtime: bool,
}

impl Reading {
    /// Records that found no room in the ring buffer, and events over a budget, since the begin.
    pub fn lost(&self) -> (u64, u64) {
        let sum = |of: fn(&CpuReading) -> u64| total(self.cpus.iter().map(of));
        (sum(|cpu| cpu.records_lost), sum(|cpu| cpu.records_over))
    }

    /// Is it of a machine that scx_artis runs on? What else a stream says costs time and memory
    /// without a bound.
    ///
    /// # Errors
    /// What it is not.
    pub fn ensure_sound(&self) -> Result<(), String> {
        let mut at_least = 0;
        for CpuReading { id, residence, arrival, .. } in &self.cpus {
            if !(at_least..MAX_CPUS).contains(id) {
                return Err(format!(
                    "CPU {id} in a reading, which is not in order or above {MAX_CPUS}"
                ));
            }
            at_least = id + 1;
            let slots = residence.0.len().max(arrival.0.len());
            if slots > SLOTS {
                return Err(format!("a histogram of {slots} slots, there are {SLOTS}"));
            }
        }
        Ok(())
    }
}

/// Counters of another version, which may have had fewer or more.
fn counters<'de, D: Deserializer<'de>>(from: D) -> Result<[u64; NR_STATS], D::Error> {
    let counters = Vec::deserialize(from)?;
    Ok(std::array::from_fn(|id| counters.get(id).copied().unwrap_or(0)))
}
