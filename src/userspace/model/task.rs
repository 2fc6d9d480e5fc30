// SPDX-License-Identifier: GPL-2.0-only
//! One task as the outlets see it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use syscalls::Sysno;

use super::Hist;
use super::field::described;
use crate::abi::bindings::{
    artis_causes_ARTIS_CAUSE_FAULT as FAULT, artis_causes_ARTIS_CAUSE_SIGNAL as SIGNAL,
};

described! {
    /// The figures of one task. Totals are of the time in which somebody watched; rates, shares
    /// and percentiles `*_pct`, `*_per_s`, `wait_p*` of the last interval.
    struct TaskMetrics ("One task") {
        pid: u64 = Label "" "pid", "Thread id";
        tgid: u64 = Label "" "tgid", "Id of its process";
        comm: String = Label "" "name", "Its name";
        class: String = Label "" "class", "How it is treated: RT0 (hard real-time, bound to RT CPUs), RT (real-time, not bound to them), RT1+ (firm real-time, by a rule or adoption), NRT (may compute anywhere), bound (NRT that may not leave its CPUs), kernel, kernel RT";
        policy: String = Label "" "policy", "Scheduling policy: OTHER, BATCH, IDLE, EXT, FIFO, RR, DEADLINE";
        rt_prio: u64 = Gauge "" "prio", "Real-time priority, 1 to 99; 0: none";
        rt1: u64 = Gauge "" "rt1", "Priority as an RT1+ task, 1 to 98: the higher the sooner; 0: it is none";
        nice: i64 = Gauge "" "nice", "Nice value, -20 to 19";
        weight: u64 = Gauge "" "weight", "Weight with which it counts in a load, its cgroup's included; 100 is nice 0";
        cpu: u64 = Gauge "" "cpu", "CPU where it runs or ran last";
        runnable: u64 = Gauge "" "R", "1 if it runs or waits for a CPU, else 0";
        calm: u64 = Gauge "" "calm", "1 if it is predicted to compute on without entering the kernel, else 0";
        may_nrt: u64 = Gauge "" "NRT?", "1 if it may run on some NRT CPU, else 0";
        may_rt: u64 = Gauge "" "RT?", "1 if it may run on some RT CPU, else 0";
        cpu_pct: f64 = Gauge "%" "cpu%", "Run time in percent of one CPU";
        on_rt_pct: f64 = Gauge "%" "onRT%", "Run time on RT CPUs in percent of one CPU";
        run_s: f64 = Counter "s" "time", "Run time since it began";
        runs: u64 = Counter "" "runs", "Times that it was put on a CPU";
        runs_per_s: f64 = Gauge "1/s" "runs/s", "Times that it was put on a CPU, per second";
        attempts: u64 = Counter "" "attempts", "Attempts: endangering kernel entries, on any CPU";
        attempts_per_s: f64 = Gauge "1/s" "att/s", "Attempts per second";
        evictions: u64 = Counter "" "evictions", "Times that an attempt made it leave an RT CPU";
        evictions_per_s: f64 = Gauge "1/s" "evic/s", "Evictions per second";
        moves_rt: u64 = Counter "" "returns", "Moves from an NRT CPU to an RT CPU";
        hits: u64 = Counter "" "hits", "Evictions before which it had computed on the RT CPU for C or longer: the prediction was right";
        misses: u64 = Counter "" "misses", "Evictions before it had computed on the RT CPU for C: the move was wasted";
        waits: u64 = Counter "" "waits", "Times that it waited for a CPU, or was woken";
        wait_p50_us: f64 = Gauge "us" "p50", "Median wait from ready to running (of a real-time task: from its wake-up) in the last interval, or in all if there was none in it";
        wait_p99_us: f64 = Gauge "us" "p99", "The 99th percentile of these waits";
        wait_max_us: f64 = Counter "us" "max", "The longest of all these waits";
        wait_max_at_s: f64 = Gauge "s" "max at", "When the longest wait ended: seconds since the scheduler began";
        wait_max_after: String = Label "" "after", "The task that had the CPU before at the longest wait, as name/pid; known of real-time tasks";
        top_cause: String = Label "" "top cause", "The cause of most of its attempts, like call openat";
    }
}

described! {
    /// What one cause did to a task.
    struct CauseMetrics ("One cause of a task's attempts") {
        cause: String = Label "" "cause", "What it was about to do: call NAME, fault, signal, other";
        attempts: u64 = Counter "" "attempts", "Attempts with this cause";
        evictions: u64 = Counter "" "evictions", "Evictions with this cause";
    }
}

/// Name of a cause (`enum artis_causes` of src/bpf/abi/task.h) on this machine's architecture.
pub fn cause_name(cause: u32) -> String {
    match cause {
        FAULT => return "fault".into(),
        SIGNAL => return "signal".into(),
        _ => {}
    }
    let nr = (cause as usize).saturating_sub(1);
    Sysno::new(nr).map_or_else(|| format!("call {nr}"), |call| format!("call {}", call.name()))
}

/// The same for a stream from a machine of architecture `arch`: names are known of this one's.
pub(super) fn cause_name_on(arch: &str, cause: u32) -> String {
    match arch == std::env::consts::ARCH || matches!(cause, FAULT | SIGNAL) {
        true => cause_name(cause),
        false => format!("call {}", cause.saturating_sub(1)),
    }
}

/// What the prediction rests on (`struct artis_history`). Times in ns; 0: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// t_d: when the last attempt was.
    pub last_ns: u64,
    /// Own run time since then.
    pub quiet_run_ns: u64,
    /// P: mean time between attempts.
    pub period_ns: u64,
    /// P in own run time.
    pub period_run_ns: u64,
    /// Least of the last intervals in own run time.
    pub least_run_ns: u64,
}

/// What a task did in one interval, for strips and sparklines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// CPU at the end.
    pub cpu: u64,
    /// Run time, percent of one CPU.
    pub cpu_pct: f64,
    /// Attempts per second.
    pub attempts_per_s: f64,
    /// Evictions per second.
    pub evictions_per_s: f64,
    /// The 99th percentile of its waits, us; 0: there was none.
    pub wait_p99_us: f64,
}

/// Intervals that are remembered of each task.
pub const POINTS: usize = 120;

/// One task: its figures, and what does not fit into a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Task {
    /// Its figures.
    pub metrics: TaskMetrics,
    /// The causes of its attempts, most attempts first; the last may be `other`.
    pub causes: Vec<CauseMetrics>,
    /// All its waits.
    pub waits: Hist,
    /// What the prediction rests on.
    pub history: History,
    /// When that was read: ns of the scheduler's clock.
    pub read_ns: u64,
    /// In the middle of an endangering section: what that is; empty: it is not.
    pub section: String,
    /// CPUs that it may run on.
    pub cpus_allowed: u64,
    /// The last [`POINTS`] intervals, the oldest first.
    pub points: VecDeque<Point>,
}
