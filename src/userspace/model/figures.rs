// SPDX-License-Identifier: GPL-2.0-only
//! From the records of one task to its figures.

use std::cmp::Reverse;

use super::task::cause_name_on;
use super::{
    Begin, COUNTERS, CauseMetrics, Hist, History, POINTS, Point, Task, TaskMetrics, printable,
};
use crate::abi::bindings as abi;
use crate::abi::bindings::{artis_task_record, artis_task_stats};

/// Fraction bits of the mean periods of `struct artis_history` (src/bpf/policy/predict.h).
pub const PERIOD_SHIFT: u32 = 8;

/// Totals of a task at the end of an interval.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    exec_ns: u64,
    on_rt_ns: u64,
    runs: u64,
    attempts: u64,
    evictions: u64,
    waits: Hist,
}

impl Totals {
    pub(super) fn of(record: &artis_task_record) -> Self {
        let stats = &record.stats;
        Self {
            exec_ns: record.exec_ns,
            on_rt_ns: stats.run_ns[1],
            runs: runs(stats),
            attempts: stats.attempts,
            evictions: stats.evictions.into(),
            waits: Hist::from(stats.wait.slot),
        }
    }
}

fn runs(stats: &artis_task_stats) -> u64 {
    stats.runs.iter().map(|runs| u64::from(*runs)).sum()
}

/// Seconds since the scheduler began; 0 for a time that is not known.
pub(super) fn at_s(begin: &Begin, time_ns: u64) -> f64 {
    time_ns.saturating_sub(begin.started_ns) as f64 / 1e9
}

/// What the last record of a task says, and what came since `before` in `interval_s` seconds.
pub(super) fn update(
    task: &mut Task,
    record: &artis_task_record,
    before: &Totals,
    interval_s: f64,
    begin: &Begin,
) {
    let stats = &record.stats;
    let now = Totals::of(record);
    let rate = |now: u64, before: u64| {
        if interval_s > 0.0 { now.saturating_sub(before) as f64 / interval_s } else { 0.0 }
    };
    // of nanoseconds in a second, in percent
    let share = |now, before| (rate(now, before) / 1e7).min(100.0);
    let waits = now.waits.latest(Some(&before.waits));
    // a slot of a histogram is wide: no percentile is above the longest wait
    let wait_max_us = stats.wait_max_ns as f64 / 1e3;
    let wait_us = |share| (waits.quantile_ns(share) / 1e3).min(wait_max_us);
    task.causes = causes(stats, begin);
    task.metrics = TaskMetrics {
        pid: record.pid.into(),
        tgid: record.tgid.into(),
        comm: name(&record.comm),
        class: class_name(record).into(),
        policy: policy_name(record.policy).into(),
        rt_prio: rt_prio(record),
        rt1: record.rt1.into(),
        nice: record.nice.into(),
        weight: record.weight.into(),
        cpu: u64::try_from(record.cpu).unwrap_or(0),
        runnable: u64::from(record.runnable != 0),
        calm: u64::from(record.calm != 0),
        may_nrt: u64::from(record.movable != 0),
        may_rt: u64::from(record.rt_allowed != 0),
        cpu_pct: share(now.exec_ns, before.exec_ns),
        on_rt_pct: share(now.on_rt_ns, before.on_rt_ns),
        run_s: now.exec_ns as f64 / 1e9,
        runs: now.runs,
        runs_per_s: rate(now.runs, before.runs),
        attempts: now.attempts,
        attempts_per_s: rate(now.attempts, before.attempts),
        evictions: now.evictions,
        evictions_per_s: rate(now.evictions, before.evictions),
        moves_rt: stats.moves_rt.into(),
        hits: stats.hits.into(),
        misses: stats.misses.into(),
        waits: stats.waits.into(),
        wait_p50_us: wait_us(0.5),
        wait_p99_us: wait_us(0.99),
        wait_max_us,
        wait_max_at_s: at_s(begin, stats.wait_max_at_ns),
        // the idle task has the id 0, but a name
        wait_max_after: match name(&stats.wait_max_after) {
            comm if comm.is_empty() => comm,
            comm => format!("{comm}/{}", stats.wait_max_after_pid),
        },
        top_cause: task.causes.first().map_or_else(String::new, |cause| cause.cause.clone()),
    };
    let history = &record.history;
    task.history = History {
        last_ns: history.last_ns,
        quiet_run_ns: history.quiet_run_ns,
        period_ns: history.period_ns >> PERIOD_SHIFT,
        period_run_ns: history.period_run_ns >> PERIOD_SHIFT,
        least_run_ns: history.least_run_ns,
    };
    task.read_ns = record.head.time_ns;
    task.section = section(record, begin);
    task.cpus_allowed = record.nr_cpus_allowed.into();
    let waited = now.waits.count() > before.waits.count();
    let wait_p99_us = if waited { task.metrics.wait_p99_us } else { 0.0 };
    remember(task, wait_p99_us);
    task.waits = now.waits;
}

/// An interval without a record: it did nothing.
pub(super) fn idle(task: &mut Task) {
    let metrics = &mut task.metrics;
    for rate in [
        &mut metrics.cpu_pct,
        &mut metrics.on_rt_pct,
        &mut metrics.runs_per_s,
        &mut metrics.attempts_per_s,
        &mut metrics.evictions_per_s,
    ] {
        *rate = 0.0;
    }
    let wait_us = |share| (task.waits.quantile_ns(share) / 1e3).min(metrics.wait_max_us);
    (metrics.wait_p50_us, metrics.wait_p99_us) = (wait_us(0.5), wait_us(0.99));
    remember(task, 0.0);
}

/// Adds the interval to the points of the task.
fn remember(task: &mut Task, wait_p99_us: f64) {
    if task.points.len() >= POINTS {
        task.points.pop_front();
    }
    let metrics = &task.metrics;
    task.points.push_back(Point {
        cpu: metrics.cpu,
        cpu_pct: metrics.cpu_pct,
        attempts_per_s: metrics.attempts_per_s,
        evictions_per_s: metrics.evictions_per_s,
        wait_p99_us,
    });
}

/// The causes, most attempts first; those that have no place of their own last.
fn causes(stats: &artis_task_stats, begin: &Begin) -> Vec<CauseMetrics> {
    let mut causes: Vec<_> = stats
        .causes
        .iter()
        .take_while(|cause| cause.cause != 0)
        .map(|cause| CauseMetrics {
            cause: cause_name_on(&begin.arch, cause.cause),
            attempts: cause.attempts.into(),
            evictions: cause.evictions.into(),
        })
        .collect();
    causes.sort_by_key(|cause| Reverse((cause.attempts, cause.evictions)));
    if stats.attempts_other > 0 || stats.evictions_other > 0 {
        causes.push(CauseMetrics {
            cause: "other".into(),
            attempts: stats.attempts_other.into(),
            evictions: stats.evictions_other.into(),
        });
    }
    causes
}

/// Name of the counter with this number; empty: there is none, the kernel did it.
pub(super) fn why(counter: usize) -> String {
    COUNTERS.get(counter).map_or_else(String::new, |counter| counter.name.to_owned())
}

/// A name as the kernel keeps it, made printable.
pub(super) fn name(comm: &[std::ffi::c_char]) -> String {
    // c_char is signed on some architectures and not on others
    printable(&comm.iter().map(|byte| byte.to_ne_bytes()[0]).collect::<Vec<_>>())
}

fn class_name(record: &artis_task_record) -> &'static str {
    // lower priorities are those of the fair and the ext class (include/linux/sched/prio.h)
    let (realtime, kernel, movable) = (record.prio < 100, record.kernel != 0, record.movable != 0);
    match () {
        () if realtime && kernel => "kernel RT",
        () if realtime && movable => "RT",
        () if realtime => "RT0",
        () if kernel => "kernel",
        () if record.rt1 != 0 => "RT1+",
        () if movable && record.nr_cpus_allowed > 1 => "NRT",
        () => "bound",
    }
}

/// Scheduling policies by their number in include/uapi/linux/sched.h.
fn policy_name(policy: u32) -> &'static str {
    match policy {
        0 => "OTHER",
        1 => "FIFO",
        2 => "RR",
        3 => "BATCH",
        5 => "IDLE",
        6 => "DEADLINE",
        7 => "EXT",
        _ => "?",
    }
}

/// The priority of sched(7); the kernel's own counts down from 99.
fn rt_prio(record: &artis_task_record) -> u64 {
    match record.policy {
        1 | 2 => (99 - i64::from(record.normal_prio)).clamp(0, 99).unsigned_abs(),
        _ => 0,
    }
}

/// What it was in the middle of when it last stopped.
fn section(record: &artis_task_record, begin: &Begin) -> String {
    match record.section.into() {
        abi::artis_section_ARTIS_SECTION_CALL | abi::artis_section_ARTIS_SECTION_SLEEPING => {
            cause_name_on(&begin.arch, record.section_nr.saturating_add(1))
        }
        abi::artis_section_ARTIS_SECTION_FAULT => "fault".into(),
        abi::artis_section_ARTIS_SECTION_SIGNAL => "signal".into(),
        _ => String::new(),
    }
}
