// SPDX-License-Identifier: GPL-2.0-only
//! Load that knows real time: M, which moves relieve, and the worked examples of model section 5.

use artis_policy::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};

const M_ONE: f64 = (1 << c::ARTIS_M_SHIFT) as f64;
const M_MAX: u32 = (65 * 32) << 20;
/// imbalance_pct
const PCT: u32 = 25;

fn share(rho: f64) -> u32 {
    (rho * f64::from(SHARE_ONE)).round() as u32
}

fn m(rho: f64) -> f64 {
    f64::from(m_of(share(rho), 1024)) / M_ONE
}

fn group(tasks: u64, rho: f64) -> Load {
    Load { weight: 100 * tasks, m: m_of(share(rho), 1024) }
}

fn load(group: &Load) -> u64 {
    load_of(group.weight, group.m)
}

/// Groups with so many tasks of nice 0 each, and what real-time tasks take of each.
type Tasks = Vec<u64>;

fn groups(tasks: &[u64], rhos: &[f64]) -> Vec<Load> {
    tasks.iter().zip(rhos).map(|(n, rho)| group(*n, *rho)).collect()
}

/// All that one move of a task may make of it, by the rule of balancing between groups.
fn moves(tasks: &[u64], rhos: &[f64]) -> Vec<Tasks> {
    let loads = groups(tasks, rhos);
    let pairs = (0..loads.len()).flat_map(|from| (0..loads.len()).map(move |to| (from, to)));
    let moves = |(from, to): &(usize, usize)| {
        tasks[*from] > 0
            && imbalanced(&loads[*from], &loads[*to], PCT)
            && relieves(&loads[*from], &loads[*to], 100)
    };
    let after = |(from, to): (usize, usize)| {
        let mut after = tasks.to_vec();
        after[from] -= 1;
        after[to] += 1;
        after
    };
    pairs.filter(moves).map(after).collect()
}

/// All ways to have `n` tasks in groups.
fn distributions(n: u64, in_groups: usize) -> Vec<Tasks> {
    if in_groups == 1 {
        return vec![vec![n]];
    }
    let with = |first: u64| {
        let rest = distributions(n - first, in_groups - 1);
        rest.into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..=n).flat_map(with).collect()
}

/// Where moves end that begin anywhere, in whatever order.
fn ends(n: u64, rhos: &[f64]) -> BTreeSet<Tasks> {
    let all = distributions(n, rhos.len());
    all.into_iter().filter(|tasks| moves(tasks, rhos).is_empty()).collect()
}

/// A step from each of them lowers the loads, the greatest first: so no way leads round.
fn no_way_leads_round(n: u64, rhos: &[f64]) {
    let ranks = |tasks: &[u64]| {
        let mut loads: Vec<_> = groups(tasks, rhos).iter().map(load).collect();
        loads.sort_unstable_by(|a, b| b.cmp(a));
        loads
    };
    for tasks in distributions(n, rhos.len()) {
        for after in moves(&tasks, rhos) {
            assert!(ranks(&after) < ranks(&tasks), "{tasks:?} to {after:?}");
        }
    }
}

/// The thesis's own code computes M as an integer: below 0.5 it says 1.
#[test]
fn m_is_the_inverse_of_what_is_left_and_capped() {
    for (rho, want) in
        [(0.0, 1.0), (0.1, 1.0 / 0.9), (0.4, 1.0 / 0.6), (0.5, 2.0), (0.75, 4.0), (0.9, 10.0)]
    {
        assert!((m(rho) - want).abs() < 1e-5 * want, "{rho}: {}", m(rho));
    }
    for rho in [0.9847, 0.999, 1.0] {
        assert!((m(rho) - 65.0).abs() < 1e-3 && m(rho) <= 65.0, "{rho}: {}", m(rho));
    }
}

#[test]
fn a_small_cpu_counts_for_less() {
    assert_eq!(m_of(0, 512), 2 << 20);
    assert_eq!(m_of(0, 2000), 1 << 20, "none is greater than the greatest");
    assert_eq!(m_of(0, 1), m_of(0, 32));
    assert!(m_of(SHARE_ONE, 1) <= M_MAX);
}

#[test]
fn a_group_adds_up_what_its_cpus_leave() {
    let power = power_of(0, 1024) + power_of(share(0.5), 1024) + power_of(0, 512);
    assert_eq!(m_of_power(power), (1 << 20) / 2);
    assert_eq!(m_of_power(0), M_MAX, "of no CPU");
    assert_eq!(m_of_power(1024 * power_of(0, 1024)), (1 << 20) / 1024);
}

/// Two CPUs, an RT task that takes 3/4 of one, five equal tasks: 4 to 1, and that is balanced.
/// From all other distributions moves of single tasks lead there.
#[test]
fn worked_example_of_five_tasks() {
    let rhos = [0.0, 0.75];
    assert_eq!(ends(5, &rhos), BTreeSet::from([vec![4, 1]]));
    no_way_leads_round(5, &rhos);
    assert_eq!(moves(&[5, 0], &rhos), [[4, 1]]);
    assert_eq!(moves(&[3, 2], &rhos), [[4, 1]]);
}

/// Annex B: thirteen tasks, one NRT CPU and three RT CPUs of share rho. L1 = 13 / (M + 3) evens out
/// every pair: 10:1:1:1 at 0.9, where a balancer that counts tasks says 4:3:3:3.
#[test]
fn worked_example_of_annex_b() {
    for rho in [0.0, 0.5, 0.75, 0.9] {
        let l1 = 13.0 / (m(rho) + 3.0);
        let weighing =
            |tasks: f64, rho| Load { weight: (100_000.0 * tasks) as u64, ..group(0, rho) };
        let (nrt, rt) = (weighing(13.0 - 3.0 * l1, 0.0), weighing(l1, rho));
        assert!(load(&nrt).abs_diff(load(&rt)) < load(&nrt) / 10_000, "{rho}");
        assert!(!imbalanced(&nrt, &rt, PCT) && !imbalanced(&rt, &nrt, PCT), "{rho}");
        no_way_leads_round(13, &[0.0, rho, rho, rho]);
    }
    assert!((13.0 / (m(0.9) + 3.0) - 1.0).abs() < 1e-4);
    assert!(imbalanced(&group(3, 0.9), &group(4, 0.0), PCT), "4:3:3:3 is far from even");
    assert_eq!(ends(13, &[0.0, 0.9, 0.9, 0.9]), BTreeSet::from([vec![10, 1, 1, 1]]));
}

/// Whole tasks cannot always be even. Where no move relieves, no other distribution has a greatest
/// load that is less by more than the threshold.
#[test]
fn moves_end_near_the_best_distribution() {
    for rho in [0.0, 0.3, 0.5, 0.75, 0.9, 1.0] {
        let rhos = [0.0, rho, rho, 0.2];
        let greatest = |tasks: &Tasks| groups(tasks, &rhos).iter().map(load).max();
        let best = distributions(9, 4).iter().filter_map(greatest).min().expect("some");
        for end in ends(9, &rhos) {
            let worst = greatest(&end).expect("four");
            assert!(worst <= best + best / 100 * u64::from(PCT) + 1, "{rho}: {end:?}");
        }
    }
}

#[test]
fn the_threshold_is_exact() {
    assert!(!imbalanced(&group(5, 0.0), &group(4, 0.0), PCT));
    assert!(imbalanced(&Load { weight: 501, ..group(0, 0.0) }, &group(4, 0.0), PCT));
    assert!(!imbalanced(&group(0, 0.0), &group(0, 0.9), PCT), "two idle groups");
    assert!(imbalanced(&group(1, 0.0), &group(0, 0.0), PCT));
}

#[test]
fn a_move_that_only_swaps_the_loads_does_not_relieve() {
    assert!(!relieves(&group(5, 0.0), &group(4, 0.0), 100));
    assert!(relieves(&group(6, 0.0), &group(4, 0.0), 100));
    assert!(!relieves(&group(1, 0.0), &group(0, 0.0), 100), "alone it is no better off elsewhere");
    assert!(relieves(&group(1, 0.5), &group(0, 0.0), 100), "but with all of a CPU");
}

#[test]
fn extremes_do_not_overflow() {
    let most = 10_000_000_000;
    assert_eq!(load_of(u64::MAX, M_MAX), load_of(most, M_MAX));
    let (e, idle) = (Load { weight: most, m: M_MAX }, group(0, 0.0));
    assert!(imbalanced(&e, &idle, 1000) && !imbalanced(&idle, &e, 1000));
    assert!(relieves(&e, &idle, u32::MAX) && !relieves(&e, &e, 1));
    let nearly = Load { m: M_MAX - M_MAX / 5, ..e };
    assert!(imbalanced(&e, &nearly, 24) && !imbalanced(&e, &nearly, 26));
}

fn any_group() -> impl Strategy<Value = Load> {
    (0.0f64..10.0, 1024..=M_MAX)
        .prop_map(|(exponent, m)| Load { weight: 10f64.powf(exponent) as u64, m })
}

proptest! {
    #[test]
    fn m_against_the_float(avg in 0..=SHARE_ONE, capacity in 1u32..=1024) {
        let rho = f64::from(avg) / f64::from(SHARE_ONE);
        let left = (1.0 - rho).max(1.0 / 65.0) * f64::from(capacity.max(32)) / 1024.0;
        let got = f64::from(m_of(avg, capacity)) / M_ONE;
        // 15 fraction bits in M is what the model asks; what is left is rounded twice to 2^-30
        let rounded = 2.0 * 2f64.powi(-30) / (left * left);
        prop_assert!((got - 1.0 / left).abs() < 2f64.powi(-15) + rounded, "{} {}", got, 1.0 / left);
        let alone = f64::from(m_of_power(power_of(avg, capacity))) / M_ONE;
        prop_assert!((alone - got).abs() < 1e-5 * got, "a group of one: {} {}", alone, got);
    }

    /// Up to the weight of 10^8 tasks and the greatest M: no overflow, and no visible rounding.
    #[test]
    fn loads_against_wide_integers(e in any_group(), r in any_group(), weight in 1u32..=1_000_000) {
        let wide = |s: &Load| u128::from(s.weight) * u128::from(s.m);
        for s in [&e, &r] {
            prop_assert!(u128::from(load(s)).abs_diff(wide(s) >> 8) <= 1);
        }
        // loads in 2^-12, each rounded
        let (more, less) = (wide(&e), wide(&r) * 125 / 100);
        if more.abs_diff(less) > 256 * 30 {
            prop_assert_eq!(imbalanced(&e, &r, PCT), more > less);
        }
        let to = Load { weight: r.weight + u64::from(weight), ..r };
        if to.weight <= 10_000_000_000 && more.abs_diff(wide(&to)) > 512 {
            prop_assert_eq!(relieves(&e, &r, weight), wide(&to) < more);
        }
    }

    /// The greater of the two loads is less after it, so the same task does not come back.
    #[test]
    fn a_move_that_relieves_lowers_the_greater_load(from in any_group(), to in any_group(), weight in 1u32..=1_000_000) {
        prop_assume!(from.weight >= u64::from(weight) && relieves(&from, &to, weight));
        let weight_moved = u64::from(weight);
        let left = Load { weight: from.weight - weight_moved, ..from };
        let joined = Load { weight: to.weight + weight_moved, ..to };
        prop_assert!(load(&left).max(load(&joined)) < load(&from).max(load(&to)));
        prop_assert!(!relieves(&joined, &left, weight));
    }

    /// Of unequal tasks, in any order of moves: no distribution comes again, and so they end.
    #[test]
    fn moves_that_relieve_do_not_go_in_circles(
        weights in prop::collection::vec(1u32..100_000, 1..8),
        ms in prop::collection::vec(1024..=M_MAX, 2..5),
        mut choices: u64,
    ) {
        let mut at = vec![0; weights.len()];
        let mut seen = HashSet::new();
        loop {
            prop_assert!(seen.insert(at.clone()), "{at:?} came again");
            let group = |nr: usize| Load {
                weight: weights.iter().zip(&at).filter(|(_, g)| **g == nr).map(|(w, _)| u64::from(*w)).sum(),
                m: ms[nr] };
            let loads: Vec<_> = (0..ms.len()).map(group).collect();
            let every = (0..at.len()).flat_map(|task| (0..ms.len()).map(move |to| (task, to)));
            let all: Vec<_> = every
                .filter(|(task, to)| at[*task] != *to)
                .filter(|(task, to)| relieves(&loads[at[*task]], &loads[*to], weights[*task]))
                .collect();
            if all.is_empty() {
                break;
            }
            choices = choices.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (task, to) = all[(choices >> 33) as usize % all.len()];
            at[task] = to;
        }
    }
}
