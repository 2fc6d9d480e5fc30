// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use crate::model::Running;

const EVICTION: usize = abi::artis_stat_ARTIS_STAT_EVICTION as usize;
const ATTEMPT_CALL: usize = abi::artis_stat_ARTIS_STAT_ATTEMPT_CALL as usize;
const BODY_ON_RT: usize = abi::artis_stat_ARTIS_STAT_BODY_ON_RT as usize;

fn cpu(id: usize, kind: CpuKind) -> CpuReading {
    CpuReading { id, kind, capacity: 1.0, ..CpuReading::default() }
}

/// A histogram with so many times in some slots.
fn hist(slots: &[(usize, u64)]) -> Hist {
    let mut hist = Hist(vec![0; crate::model::SLOTS]);
    for (slot, n) in slots {
        hist.0[*slot] = *n;
    }
    hist
}

fn close(seen: f64, wanted: f64) {
    assert!((seen - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{seen} is not {wanted}");
}

#[test]
fn load_follows_the_share_up_to_its_cap() {
    close(load(200.0, power(1.0, 0.0)), 2.0);
    close(load(200.0, power(1.0, 0.5)), 4.0);
    close(load(100.0, power(1.0, 0.75)), 4.0);
    close(load(100.0, power(1.0, 0.99)), MULTIPLIER_MAX);
    close(load(100.0, power(1.0, 1.0)), MULTIPLIER_MAX);
    close(load(0.0, power(1.0, 1.0)), 0.0);
    close(load(150.0, power(0.5, 0.0)), 3.0);
    close(load(100.0, power(0.0, 0.0)), 32.0);
}

#[test]
fn share_moves_without_a_switch() {
    let hog = RtShare { avg: 0.0, in_rt: true, updated_ns: 1_000, total_ns: 5 };
    close(hog.at(1_000), 0.0);
    close(hog.at(500_001_000), 1.0 - (-1.0f64).exp());
    assert_eq!(hog.total_at(3_000), 2_005);
    assert_eq!(hog.total_at(0), 5, "a clock that lags behind is no negative time");
    let gone = RtShare { avg: 0.8, in_rt: false, ..hog };
    close(gone.at(500_001_000), 0.8 * (-1.0f64).exp());
    assert_eq!(gone.total_at(u64::MAX), 5);
}

#[test]
fn rates_are_per_second_of_the_interval() {
    let mut before = cpu(2, CpuKind::Rt);
    before.stat[EVICTION] = 100;
    before.ext_ns = 7;
    let mut after = before.clone();
    after.stat[EVICTION] = 160;
    after.stat[ATTEMPT_CALL] = 90;
    (after.stat[BODY_ON_RT], after.body_cause) = (1, abi::artis_causes_ARTIS_CAUSE_SIGNAL);
    after.ext_ns = 1_000_000_007;
    (after.loose_ns, after.loose_calls) = (400_000_000, 30);
    after.residence_ns = 4_000_000;
    after.residence_max_ns = 9_500;
    (before.residence, after.residence) = (hist(&[(20, 9)]), hist(&[(3, 100), (20, 9)]));
    (before.arrival, after.arrival) = (hist(&[(9, 4)]), hist(&[(9, 4)]));
    (after.records_lost, after.records_over) = (3, 5);
    after.rt = RtShare { avg: 0.0, in_rt: true, updated_ns: 2_000_000_000, total_ns: 0 };
    after.running = Some(Running { pid: 7, comm: "hog".into(), realtime: true });
    let prev = Reading { now_ns: 1_000_000_000, cpus: vec![before], ..Reading::default() };
    let mut now = Reading { now_ns: 3_000_000_000, cpus: vec![after], ..Reading::default() };

    let metrics = Metrics::between(Some(&prev), &now);
    let seen = &metrics.cpus[&2];
    close(seen.evictions_per_s, 30.0);
    close(seen.attempts_per_s, 45.0);
    close(seen.ext_pct, 50.0);
    close(seen.rt_pct, 50.0);
    close(seen.loose_pct, 20.0);
    close(seen.loose_calls_per_s, 15.0);
    assert_eq!((metrics.loose_pct, metrics.loose_calls_per_s), (20.0, 15.0));
    close(seen.residence_us_per_s, 2_000.0);
    close(seen.residence_max_us, 9.5);
    assert_eq!((seen.bodies_on_rt, seen.running_rt, seen.kind.as_str()), (1, 1, "RT"));
    assert_eq!((metrics.evictions, metrics.attempts_call, metrics.bodies_on_rt), (160, 90, 1));
    assert_eq!(metrics.body_causes(), "signal on CPU 2");
    // calls of other machines have other numbers
    now.cpus[0].body_cause = 258;
    let foreign = Metrics::between_on("sparc64", Some(&prev), &now);
    assert_eq!(foreign.body_causes(), "call 257 on CPU 2");
    close(seen.idle_pct, 0.0);
    // those of the interval; where there are none, all
    let within = |us: f64, slot| {
        us * 1e3 > Hist::from_ns(slot) as f64 && us * 1e3 <= Hist::from_ns(slot + 1) as f64
    };
    for (residence, arrival) in [
        (seen.residence_p99_us, seen.arrival_p50_us),
        (metrics.residence_p99_us, metrics.arrival_p99_us),
    ] {
        assert!(within(residence, 3) && within(arrival, 9), "{residence} {arrival}");
    }
    assert_eq!((metrics.records_lost, metrics.records_over), (3, 5));
    close(metrics.uptime_s, 3.0);
    close(metrics.interval_s, 2.0);
}

#[test]
fn cpus_of_a_group_share_its_tasks() {
    let mut cpus: Vec<_> = (0..3).map(|id| cpu(id, CpuKind::Nrt)).collect();
    cpus.push(cpu(3, CpuKind::Rt));
    for cpu in &mut cpus {
        (cpu.bound_weight, cpu.calm_weight, cpu.shared_queued) = (300, 500, 3);
    }
    // a real-time task takes half of CPU 1, and of the RT CPU
    (cpus[1].rt.avg, cpus[3].rt.avg) = (0.5, 0.5);
    (cpus[0].own_weight, cpus[3].own_weight) = (50, 40);
    // a group of its own, half as fast
    (cpus[2].group, cpus[2].capacity, cpus[2].shared_queued) = (1, 0.5, 1);
    let mut now = Reading { policy_seq: 7, cpus, ..Reading::default() };
    let metrics = Metrics::between(None, &now);
    let seen = metrics.cpus.values().map(|cpu| (cpu.weight, cpu.load));
    for ((weight, load), (own, bound, calm, power)) in seen.zip([
        (50.0, 200.0, 250.0, 1.0),
        (0.0, 100.0, 125.0, 0.5),
        (0.0, 300.0, 500.0, 0.5),
        (40.0, 0.0, 125.0, 0.5),
    ]) {
        let wanted: f64 = own + bound + calm;
        assert_eq!(weight as f64, wanted);
        close(load, wanted / 100.0 / power);
    }
    assert_eq!((metrics.rt_cpus, metrics.nrt_cpus, metrics.shared_queued), (1, 3, 4));
    assert_eq!((metrics.rt_cpu_list.as_str(), metrics.policy_seq), ("3", 7));

    now.cpus[0].stat[abi::artis_stat_ARTIS_STAT_MOVE_RT as usize] = 200;
    now.cpus[3].stat[abi::artis_stat_ARTIS_STAT_WASTED as usize] = 3;
    close(metrics.wasted_pct, 0.0);
    close(Metrics::between(None, &now).wasted_pct, 1.5);
}

#[test]
fn no_time_and_shrunken_totals_are_no_rates() {
    let mut cpu = cpu(0, CpuKind::Nrt);
    cpu.stat[EVICTION] = 5;
    let reading =
        Reading { now_ns: 10, started_ns: 10, cpus: vec![cpu.clone()], ..Reading::default() };
    close(Metrics::between(None, &reading).evictions_per_s, 0.0);
    cpu.stat[EVICTION] = 3;
    let later = Reading { now_ns: 20, started_ns: 10, cpus: vec![cpu], ..Reading::default() };
    close(Metrics::between(Some(&reading), &later).evictions_per_s, 0.0);
}
