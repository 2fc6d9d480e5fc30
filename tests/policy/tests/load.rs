// SPDX-License-Identifier: GPL-2.0-only
//! Load that knows real time: M, the surplus, and the worked examples of model section 5.

use artis_policy::*;
use proptest::prelude::*;

const M_ONE: f64 = (1 << c::ARTIS_M_SHIFT) as f64;
const M_MAX: u32 = (65 * 32) << 20;

fn share(rho: f64) -> u32 {
    (rho * f64::from(SHARE_ONE)).round() as u32
}

fn m(rho: f64) -> f64 {
    f64::from(m_of(share(rho), 1024)) / M_ONE
}

fn seat(tasks: u64, rho: f64) -> Seat {
    Seat { weight: 100 * tasks, m: m_of(share(rho), 1024), ..Seat::default() }
}

fn load(seat: &Seat) -> f64 {
    seat_load(seat) as f64 / f64::from(1 << c::ARTIS_LOAD_SHIFT)
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
#[test]
fn worked_example_of_five_tasks() {
    let at = |nrt, rt| (seat(nrt, 0.0), seat(rt, 0.75));
    let (e, r) = at(5, 0);
    assert_eq!(surplus(&e, &r), 100);
    assert!(imbalanced(&e, &r, 25));
    let (e, r) = at(4, 1);
    assert_eq!((surplus(&e, &r), surplus(&r, &e)), (0, 0));
    assert!(!imbalanced(&e, &r, 25) && !imbalanced(&r, &e, 25));
    let (r, e) = at(3, 2);
    assert_eq!(surplus(&e, &r), 100);
}

/// Annex B: thirteen tasks, one NRT CPU and three RT CPUs of share rho. L1 = 13 / (M + 3) evens out
/// every pair: 10:1:1:1 at 0.9, where a balancer that counts tasks says 4:3:3:3.
#[test]
fn worked_example_of_annex_b() {
    for rho in [0.0, 0.5, 0.75, 0.9] {
        let l1 = 13.0 / (m(rho) + 3.0);
        let nrt = Seat { weight: (100_000.0 * (13.0 - 3.0 * l1)) as u64, ..seat(0, 0.0) };
        let rt = Seat { weight: (100_000.0 * l1) as u64, ..seat(0, rho) };
        assert!((load(&nrt) - load(&rt)).abs() < 1e-4 * load(&nrt), "{rho}");
    }
    assert!((13.0 / (m(0.9) + 3.0) - 1.0).abs() < 1e-4);
    assert!(imbalanced(&seat(3, 0.9), &seat(4, 0.0), 25), "4:3:3:3 is far from even");
}

#[test]
fn the_threshold_is_exact() {
    assert!(!imbalanced(&seat(5, 0.0), &seat(4, 0.0), 25));
    assert!(imbalanced(&Seat { weight: 501, ..seat(0, 0.0) }, &seat(4, 0.0), 25));
    assert!(!imbalanced(&seat(0, 0.0), &seat(0, 0.9), 25), "two idle seats");
    assert!(imbalanced(&seat(1, 0.0), &seat(0, 0.0), 25));
}

#[test]
fn extremes_do_not_overflow() {
    let most = 10_000_000_000;
    assert_eq!(
        seat_load(&Seat { weight: u64::MAX, m: M_MAX, ..Seat::default() }),
        load_of(most, M_MAX)
    );
    let e = Seat { weight: most, m: M_MAX, ..Seat::default() };
    let want = most as f64 * f64::from(M_MAX) / f64::from(M_MAX + (1 << 20));
    assert!((surplus(&e, &seat(0, 0.0)) as f64 - want).abs() < 1e-6 * want);
}

proptest! {
    #[test]
    fn m_against_the_float(avg in 0..=SHARE_ONE, capacity in 1u32..=1024) {
        let rho = f64::from(avg) / f64::from(SHARE_ONE);
        let left = (1.0 - rho).max(1.0 / 65.0) * f64::from(capacity.max(32)) / 1024.0;
        let got = f64::from(m_of(avg, capacity)) / M_ONE;
        // 15 fraction bits in M is what the model asks
        prop_assert!((got - 1.0 / left).abs() < 2f64.powi(-15) + 1e-6 / left, "{} {}", got, 1.0 / left);
        let alone = f64::from(m_of_power(power_of(avg, capacity))) / M_ONE;
        prop_assert!((alone - got).abs() < 1e-5 * got, "a group of one: {} {}", alone, got);
    }

    /// Up to the weight of 10^8 tasks and the greatest M: no overflow, and no visible rounding.
    #[test]
    fn load_and_surplus_against_wide_integers(
        exponents in (0.0f64..10.0, 0.0f64..10.0),
        ms in (1024..=M_MAX, 1024..=M_MAX),
    ) {
        let weigh = |exponent| 10f64.powf(exponent) as u64;
        let e = Seat { weight: weigh(exponents.0), m: ms.0, ..Seat::default() };
        let r = Seat { weight: weigh(exponents.1), m: ms.1, ..Seat::default() };
        let wide = |s: &Seat| u128::from(s.weight) * u128::from(s.m);
        for s in [&e, &r] {
            prop_assert!(u128::from(seat_load(s)).abs_diff(wide(s) >> 8) <= 1);
        }
        let want = wide(&e).saturating_sub(wide(&r)) / (u128::from(e.m) + u128::from(r.m));
        // of loads in 2^-12, each rounded
        let slack = want / 1_000_000 + 1 + 512 / (u128::from(e.m) + u128::from(r.m));
        prop_assert!(u128::from(surplus(&e, &r)).abs_diff(want) <= slack, "{} {}", surplus(&e, &r), want);
        prop_assert!(surplus(&e, &r) == 0 || surplus(&r, &e) == 0);
        if imbalanced(&e, &r, 25) {
            prop_assert!(wide(&e) + 512 > wide(&r) * 125 / 100);
        }
    }

    /// What is left to move after a move is less by just what moved, whatever the two M.
    #[test]
    fn surplus_falls_by_what_moves(
        weights in (100u64..1_000_000, 0u64..1_000_000), rho in (0.0f64..1.0, 0.0f64..1.0), part in 0.0f64..1.0,
    ) {
        let mut e = Seat { weight: weights.0, ..seat(0, rho.0) };
        let mut r = Seat { weight: weights.1, ..seat(0, rho.1) };
        let n = surplus(&e, &r);
        prop_assert!(n <= e.weight);
        let w = (n as f64 * part) as u64;
        e.weight -= w;
        r.weight += w;
        prop_assert!(surplus(&e, &r).abs_diff(n - w) <= 1);
    }
}
