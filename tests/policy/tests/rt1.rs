// SPDX-License-Identifier: GPL-2.0-only
//! RT1+ (src/bpf/policy/rt1.h): the order in a queue, and the budget of a second.

use artis_policy::c::{ARTIS_BOUND_FIRST, ARTIS_RT1_MAX, ARTIS_RT1_MIN, ARTIS_VTIME_FAR};
use artis_policy::{Policy, Rt1Budget, before, rt1_charge, rt1_order, rt1_throttled};
use proptest::prelude::*;

const SECOND_NS: u64 = 1 << 30;
const YEAR_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// Times that are less than this apart may be taken for equal.
const GRAIN_NS: u64 = 1024;

fn priority() -> impl Strategy<Value = u32> {
    ARTIS_RT1_MIN..=ARTIS_RT1_MAX
}

proptest! {
    #[test]
    fn the_higher_priority_is_first_whenever_it_came(
        high in priority(), low in priority(), a in 0..9 * YEAR_NS, b in 0..9 * YEAR_NS,
    ) {
        prop_assume!(high > low);
        prop_assert!(before(rt1_order(high, a), rt1_order(low, b)));
        prop_assert!(!before(rt1_order(low, b), rt1_order(high, a)));
    }

    #[test]
    fn among_equals_the_first_that_came_is_first(
        priority in priority(), a in 0..9 * YEAR_NS, later in GRAIN_NS..YEAR_NS / 10,
    ) {
        prop_assume!(a + later < 9 * YEAR_NS);
        prop_assert!(before(rt1_order(priority, a), rt1_order(priority, a + later)));
    }

    /// NRT tasks are ordered by a virtual time within years of 0, those that are bound to an RT CPU
    /// by one far before; and whoever drains a FIFO compares with a time that none has.
    #[test]
    fn all_of_them_are_before_the_others(
        priority in priority(), now in 0..9 * YEAR_NS, vtime in 0..20 * YEAR_NS,
    ) {
        let order = rt1_order(priority, now);
        for other in [vtime, vtime.wrapping_sub(ARTIS_BOUND_FIRST), vtime + ARTIS_VTIME_FAR] {
            prop_assert!(before(order, other), "{order} {other}");
            prop_assert!(!before(other, order), "{order} {other}");
        }
    }

    /// However a second is cut into runs: the budget is used up once, at the run that does it.
    #[test]
    fn the_budget_is_used_up_once(pct in 1..100u32, runs in prop::collection::vec(1..SECOND_NS / 20, 1..60)) {
        let policy = Policy { rt1_budget_pct: pct, ..Policy::default() };
        let all_ns = u64::from(pct) * SECOND_NS / 100;
        let (mut budget, mut used_ns) = (Rt1Budget::default(), 0);
        for run_ns in runs {
            let before_ns = used_ns;
            used_ns += run_ns;
            let now_ns = 7 * SECOND_NS + used_ns.min(SECOND_NS - 1);
            prop_assert_eq!(
                rt1_charge(&mut budget, &policy, now_ns, run_ns),
                before_ns < all_ns && used_ns >= all_ns
            );
            prop_assert_eq!(rt1_throttled(&budget, &policy, ARTIS_RT1_MAX, now_ns), used_ns >= all_ns);
            prop_assert!(!rt1_throttled(&budget, &policy, ARTIS_RT1_MAX, 8 * SECOND_NS), "in the next second");
        }
    }
}

/// Limits as they are packed: `(priority, percent)`, the lowest first.
fn limits(all: &[(u32, u32)]) -> u64 {
    all.iter().rev().fold(0, |word, (up_to, pct)| word << 16 | u64::from(pct << 8 | up_to))
}

#[test]
fn low_priorities_stop_earlier_and_each_limit_is_told_once() {
    let policy = Policy {
        rt1_budget_pct: 95,
        rt1_limits: limits(&[(20, 30), (60, 80)]),
        ..Policy::default()
    };
    let mut budget = Rt1Budget::default();
    let stops = |budget: &Rt1Budget, priority| rt1_throttled(budget, &policy, priority, SECOND_NS);
    for pct in 1..=100 {
        let bites = rt1_charge(&mut budget, &policy, SECOND_NS, SECOND_NS / 100 + 1);
        assert_eq!(bites, [30, 80, 95].contains(&pct), "{pct} %");
        for (priority, limit) in [(1, 30), (20, 30), (21, 80), (60, 80), (61, 95), (98, 95)] {
            assert_eq!(stops(&budget, priority), pct >= limit, "{priority} at {pct} %");
        }
    }
}

#[test]
fn a_limit_above_the_budget_gives_no_more_than_the_budget() {
    let policy =
        Policy { rt1_budget_pct: 50, rt1_limits: limits(&[(98, 90)]), ..Policy::default() };
    let budget = Rt1Budget { second: 1, used_ns: (SECOND_NS / 2) as u32 };
    assert!(rt1_throttled(&budget, &policy, 98, SECOND_NS));
}

#[test]
fn with_the_budget_off_limits_still_hold() {
    let policy =
        Policy { rt1_budget_pct: 100, rt1_limits: limits(&[(10, 40)]), ..Policy::default() };
    let mut budget = Rt1Budget::default();
    assert!(rt1_charge(&mut budget, &policy, SECOND_NS, SECOND_NS / 2));
    assert!(!rt1_charge(&mut budget, &policy, SECOND_NS, SECOND_NS));
    assert!(rt1_throttled(&budget, &policy, 10, SECOND_NS));
    assert!(!rt1_throttled(&budget, &policy, 11, SECOND_NS));
}

proptest! {
    /// Nobody is stopped while a lower one may run.
    #[test]
    fn never_stopped_before_a_lower_one(
        mut priorities in prop::collection::btree_set(priority(), 0..5),
        mut shares in prop::collection::vec(1..=100u32, 4),
        pct in 1..=100u32, used_ns in 0..SECOND_NS as u32, high in priority(), low in priority(),
    ) {
        prop_assume!(high > low);
        shares.sort_unstable();
        while priorities.len() > 4 {
            priorities.pop_last();
        }
        let all: Vec<_> = priorities.into_iter().zip(shares).collect();
        let policy = Policy { rt1_budget_pct: pct, rt1_limits: limits(&all), ..Policy::default() };
        let budget = Rt1Budget { second: 1, used_ns };
        let stops = |priority| rt1_throttled(&budget, &policy, priority, SECOND_NS);
        prop_assert!(!stops(high) || stops(low), "{all:?}");
    }
}

#[test]
fn a_whole_second_is_no_limit() {
    let policy = Policy { rt1_budget_pct: 100, ..Policy::default() };
    let mut budget = Rt1Budget::default();
    for i in 1..=2000 {
        assert!(!rt1_charge(&mut budget, &policy, i * SECOND_NS / 1000, SECOND_NS));
        assert!(!rt1_throttled(&budget, &policy, ARTIS_RT1_MAX, i * SECOND_NS / 1000));
    }
}

#[test]
fn a_new_second_begins_with_nothing_used() {
    let policy = Policy { rt1_budget_pct: 50, ..Policy::default() };
    let mut budget = Rt1Budget::default();
    assert!(rt1_charge(&mut budget, &policy, SECOND_NS + 1, SECOND_NS / 2));
    assert!(!rt1_charge(&mut budget, &policy, 2 * SECOND_NS, 1));
    assert!(!rt1_throttled(&budget, &policy, ARTIS_RT1_MAX, 2 * SECOND_NS));
    assert!(rt1_charge(&mut budget, &policy, 2 * SECOND_NS + 9, SECOND_NS / 2));
}
