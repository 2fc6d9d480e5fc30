// SPDX-License-Identifier: GPL-2.0-only
//! From two readings to rates, shares and loads.

use std::collections::BTreeMap;

use super::task::cause_name_on;
use super::{CpuMetrics, CpuReading, Hist, Metrics, Reading, RtShare, total};
use crate::abi::{CpuKind, NR_STATS, bindings as abi};
use crate::config::CpuSet;

/// Time constant of the real-time share, ns (src/bpf/policy/load.h).
const SHARE_TAU_NS: f64 = 500e6;

/// Cap of the multiplier M (design: model section 5; RT ≤ 0.9846 in the thesis).
pub const MULTIPLIER_MAX: f64 = 65.0;

/// Least compute capacity that counts (src/bpf/policy/load.h).
const CAPACITY_MIN: f64 = 32.0 / 1024.0;

/// What a CPU of compute capacity `capacity` (up to 1) leaves to ext tasks, in whole CPUs,
/// when its real-time share is `rt` (0 to 1).
pub fn power(capacity: f64, rt: f64) -> f64 {
    (1.0 - rt).max(1.0 / MULTIPLIER_MAX) * capacity.clamp(CAPACITY_MIN, 1.0)
}

/// The load of a CPU that leaves `power` to runnable ext tasks of weight `weight` (100 is one of
/// nice 0): weight / 100 x M, where M is the inverse of `power` (design: model section 5;
/// src/bpf/policy/load.h).
pub fn load(weight: f64, power: f64) -> f64 {
    weight / 100.0 / power
}

impl RtShare {
    /// The exponential average at `now_ns`, 0 to 1. Between two switches it has
    /// a closed form, so a task that never leaves is seen, too.
    pub fn at(&self, now_ns: u64) -> f64 {
        let elapsed_ns = now_ns.saturating_sub(self.updated_ns) as f64;
        let kept = (-elapsed_ns / SHARE_TAU_NS).exp();
        let avg = if self.in_rt { 1.0 - (1.0 - self.avg) * kept } else { self.avg * kept };
        avg.clamp(0.0, 1.0)
    }

    /// All time in real-time tasks up to `now_ns`, ns.
    pub fn total_at(&self, now_ns: u64) -> u64 {
        let current = if self.in_rt { now_ns.saturating_sub(self.updated_ns) } else { 0 };
        self.total_ns.saturating_add(current)
    }
}

/// The interval between two readings, and what happens per second of it.
struct Interval<'a> {
    prev: Option<&'a Reading>,
    now_ns: u64,
    ns: f64,
    /// The machine's.
    arch: &'a str,
}

impl Interval<'_> {
    fn name_of(&self, cause: u32) -> String {
        if cause == 0 { String::new() } else { cause_name_on(self.arch, cause) }
    }

    fn prev_cpu(&self, id: usize) -> Option<&CpuReading> {
        self.prev?.cpus.iter().find(|cpu| cpu.id == id)
    }

    /// Growth of a total, per second.
    fn per_s(&self, before: u64, after: u64) -> f64 {
        if self.ns > 0.0 { after.saturating_sub(before) as f64 * 1e9 / self.ns } else { 0.0 }
    }

    /// Growth of a time in ns, as a share of the interval in percent.
    fn pct(&self, before_ns: u64, after_ns: u64) -> f64 {
        (self.per_s(before_ns, after_ns) / 1e7).min(100.0)
    }
}

/// The times of all CPUs in the interval, or since the begin if there were none in it.
fn latest_of_all(interval: &Interval<'_>, now: &Reading, of: fn(&CpuReading) -> &Hist) -> Hist {
    let sum = |reading: &Reading| reading.cpus.iter().map(of).sum::<Hist>();
    sum(now).latest(interval.prev.map(sum).as_ref())
}

/// The time that a share of `share` does not exceed, us.
fn quantile_us(times: &Hist, share: f64) -> f64 {
    times.quantile_ns(share) / 1e3
}

impl Metrics {
    /// What the latest bodies on RT CPUs were, one for each CPU that had any: "call read on CPU 2".
    pub fn body_causes(&self) -> String {
        let of_cpu = |(id, cpu): (&usize, &CpuMetrics)| {
            (!cpu.body_cause.is_empty()).then(|| format!("{} on CPU {id}", cpu.body_cause))
        };
        self.cpus.iter().filter_map(of_cpu).collect::<Vec<_>>().join(", ")
    }

    /// What happened between `prev` and `now`; without `prev`, since the
    /// scheduler began.
    ///
    /// Totals that shrank (a restarted scheduler) count as unchanged.
    pub fn between(prev: Option<&Reading>, now: &Reading) -> Self {
        Self::between_on(std::env::consts::ARCH, prev, now)
    }

    /// The same for readings of a machine of architecture `arch`.
    pub(super) fn between_on(arch: &str, prev: Option<&Reading>, now: &Reading) -> Self {
        let began_ns = prev.map_or(now.started_ns, |prev| prev.now_ns);
        let ns = now.now_ns.saturating_sub(began_ns) as f64;
        let interval = Interval { prev, now_ns: now.now_ns, ns, arch };
        let of_kind = |kind| now.cpus.iter().filter(move |cpu| cpu.kind == kind);
        let rt_cpus = of_kind(CpuKind::Rt).map(|cpu| cpu.id);
        let groups = group_powers(now);
        let cpus: BTreeMap<_, _> =
            now.cpus.iter().map(|cpu| (cpu.id, cpu_between(&interval, cpu, &groups))).collect();
        let (records_lost, records_over) = now.lost();
        let residence = latest_of_all(&interval, now, |cpu| &cpu.residence);
        let arrival = latest_of_all(&interval, now, |cpu| &cpu.arrival);
        let mut metrics = Self {
            uptime_s: now.now_ns.saturating_sub(now.started_ns) as f64 / 1e9,
            interval_s: interval.ns / 1e9,
            policy_seq: now.policy_seq.into(),
            rt_cpu_list: rt_cpus.collect::<CpuSet>().to_string(),
            rt_cpus: cpus.values().map(|cpu| cpu.is_rt).sum(),
            nrt_cpus: of_kind(CpuKind::Nrt).count() as u64,
            attempts_per_s: cpus.values().map(|cpu| cpu.attempts_per_s).sum(),
            evictions_per_s: cpus.values().map(|cpu| cpu.evictions_per_s).sum(),
            rt_pct: mean_of_rt(&cpus, |cpu| cpu.rt_pct),
            loose_pct: mean_of_rt(&cpus, |cpu| cpu.loose_pct),
            loose_calls_per_s: cpus.values().map(|cpu| cpu.loose_calls_per_s).sum(),
            ext_pct: mean_of_rt(&cpus, |cpu| cpu.ext_pct),
            idle_pct: mean_of_rt(&cpus, |cpu| cpu.idle_pct),
            residence_us_per_s: cpus.values().map(|cpu| cpu.residence_us_per_s).sum(),
            residence_max_us: cpus.values().map(|cpu| cpu.residence_max_us).fold(0.0, f64::max),
            residence_p99_us: quantile_us(&residence, 0.99),
            arrival_p50_us: quantile_us(&arrival, 0.5),
            arrival_p99_us: quantile_us(&arrival, 0.99),
            shared_queued: shared_queued(now),
            records: total(now.cpus.iter().map(|cpu| cpu.records)),
            records_lost,
            records_over,
            cpus,
            ..Self::default()
        };
        metrics.set_counters(&totals(now));
        if metrics.moved_rt > 0 {
            metrics.wasted_pct = metrics.wasted as f64 * 100.0 / metrics.moved_rt as f64;
        }
        metrics
    }
}

/// All event counters, summed over the CPUs.
fn totals(reading: &Reading) -> [u64; NR_STATS] {
    std::array::from_fn(|id| total(reading.cpus.iter().map(|cpu| cpu.stat[id])))
}

/// Tasks in the queues of all groups.
fn shared_queued(reading: &Reading) -> u64 {
    let groups: BTreeMap<_, _> =
        reading.cpus.iter().map(|cpu| (cpu.group, cpu.shared_queued)).collect();
    total(groups.into_values())
}

/// What `cpu` leaves to ext tasks, in whole CPUs.
fn power_of(cpu: &CpuReading, now_ns: u64) -> f64 {
    power(cpu.capacity, cpu.rt.at(now_ns))
}

/// What the CPUs of a group leave to ext tasks in sum.
#[derive(Clone, Copy, Debug, Default)]
struct GroupPower {
    nrt: f64,
    all: f64,
}

/// By the number of the group.
fn group_powers(reading: &Reading) -> BTreeMap<usize, GroupPower> {
    let mut groups = BTreeMap::<_, GroupPower>::new();
    for cpu in &reading.cpus {
        let power = power_of(cpu, reading.now_ns);
        let group = groups.entry(cpu.group).or_default();
        group.all += power;
        if cpu.kind == CpuKind::Nrt {
            group.nrt += power;
        }
    }
    groups
}

/// Weight of the tasks that may run on `cpu` only, and its share of those of its group: of the
/// bound ones among the NRT CPUs, of the calm ones among all. `power` is what it leaves.
fn weight_of(cpu: &CpuReading, power: f64, group: GroupPower) -> f64 {
    let bound = match cpu.kind {
        CpuKind::Nrt => cpu.bound_weight as f64 * power / group.nrt,
        _ => 0.0,
    };
    cpu.own_weight as f64 + bound + cpu.calm_weight as f64 * power / group.all
}

fn mean_of_rt(cpus: &BTreeMap<usize, CpuMetrics>, figure: impl Fn(&CpuMetrics) -> f64) -> f64 {
    let figures: Vec<_> = cpus.values().filter(|cpu| cpu.is_rt == 1).map(figure).collect();
    if figures.is_empty() { 0.0 } else { figures.iter().sum::<f64>() / figures.len() as f64 }
}

fn cpu_between(
    interval: &Interval<'_>,
    cpu: &CpuReading,
    groups: &BTreeMap<usize, GroupPower>,
) -> CpuMetrics {
    let prev = interval.prev_cpu(cpu.id);
    let prev_stat = prev.map_or([0; NR_STATS], |prev| prev.stat);
    let stat_per_s = |id: abi::artis_stat| {
        let id = id as usize;
        interval.per_s(prev_stat[id], cpu.stat[id])
    };
    let prev_rt_ns = prev.zip(interval.prev).map_or(0, |(cpu, prev)| cpu.rt.total_at(prev.now_ns));
    let running = cpu.running.as_ref();
    let residence = cpu.residence.latest(prev.map(|prev| &prev.residence));
    let arrival = cpu.arrival.latest(prev.map(|prev| &prev.arrival));
    let power = power_of(cpu, interval.now_ns);
    let weight = weight_of(cpu, power, groups.get(&cpu.group).copied().unwrap_or_default());
    let rt_pct = interval.pct(prev_rt_ns, cpu.rt.total_at(interval.now_ns));
    let ext_pct = interval.pct(prev.map_or(0, |prev| prev.ext_ns), cpu.ext_ns);
    CpuMetrics {
        kind: if cpu.kind == CpuKind::Rt { "RT" } else { "NRT" }.to_owned(),
        is_rt: u64::from(cpu.kind == CpuKind::Rt),
        rt_pct,
        loose_pct: interval.pct(prev.map_or(0, |prev| prev.loose_ns), cpu.loose_ns),
        loose_calls_per_s: interval.per_s(prev.map_or(0, |prev| prev.loose_calls), cpu.loose_calls),
        ext_pct,
        idle_pct: (100.0 - rt_pct - ext_pct).max(0.0),
        load: load(weight, power),
        weight: weight.round() as u64,
        attempts_per_s: stat_per_s(abi::artis_stat_ARTIS_STAT_ATTEMPT_CALL)
            + stat_per_s(abi::artis_stat_ARTIS_STAT_ATTEMPT_FAULT)
            + stat_per_s(abi::artis_stat_ARTIS_STAT_ATTEMPT_SIGNAL),
        evictions_per_s: stat_per_s(abi::artis_stat_ARTIS_STAT_EVICTION),
        bodies_on_rt: cpu.stat[abi::artis_stat_ARTIS_STAT_BODY_ON_RT as usize],
        body_cause: interval.name_of(cpu.body_cause),
        residence_us_per_s: interval
            .per_s(prev.map_or(0, |prev| prev.residence_ns), cpu.residence_ns)
            / 1e3,
        residence_p99_us: quantile_us(&residence, 0.99),
        residence_max_us: cpu.residence_max_ns as f64 / 1e3,
        arrival_p50_us: quantile_us(&arrival, 0.5),
        arrival_p99_us: quantile_us(&arrival, 0.99),
        queued: cpu.own_queued,
        records_lost: cpu.records_lost,
        records_over: cpu.records_over,
        running_pid: running.map_or(0, |task| u64::from(task.pid)),
        running_comm: running.map_or_else(String::new, |task| task.comm.clone()),
        running_rt: u64::from(running.is_some_and(|task| task.realtime)),
    }
}

#[cfg(test)]
mod tests;
