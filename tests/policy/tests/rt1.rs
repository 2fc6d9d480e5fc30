// SPDX-License-Identifier: GPL-2.0-only
//! RT1+ (src/bpf/policy/fair.h): the order in a queue, and the budget of a second.

use artis_policy::c::{ARTIS_RT1_FIRST, ARTIS_RT1_MAX, ARTIS_RT1_MIN};
use artis_policy::{Policy, Rt1Budget, before, is_rt1_order, rt1_charge, rt1_order, rt1_throttled};
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

    /// NRT tasks are ordered by a virtual time within years of 0.
    #[test]
    fn all_of_them_are_before_the_others(
        priority in priority(), now in 0..9 * YEAR_NS, vtime in 0..20 * YEAR_NS,
    ) {
        let order = rt1_order(priority, now);
        for other in [vtime, vtime.wrapping_neg()] {
            prop_assert!(before(order, other), "{order} {other}");
            prop_assert!(!before(other, order), "{order} {other}");
        }
    }

    /// Whatever the clock says, and whoever asks for more than the highest priority.
    #[test]
    fn an_rt1_order_is_told_from_a_virtual_time(
        priority in ARTIS_RT1_MIN..1000, now: u64, vtime in 0..=20 * YEAR_NS,
    ) {
        prop_assert!(is_rt1_order(rt1_order(priority, now)));
        prop_assert!(!is_rt1_order(vtime) && !is_rt1_order(vtime.wrapping_neg()));
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
            prop_assert_eq!(rt1_throttled(&budget, &policy, now_ns), used_ns >= all_ns);
            prop_assert!(!rt1_throttled(&budget, &policy, 8 * SECOND_NS), "in the next second");
        }
    }
}

#[test]
fn rt1_orders_end_where_the_first_and_the_last_place_are() {
    let first = rt1_order(ARTIS_RT1_MAX, 0);
    assert_eq!(first, ARTIS_RT1_FIRST.wrapping_neg());
    let last = rt1_order(ARTIS_RT1_MIN, u64::MAX);
    assert!(is_rt1_order(first) && !is_rt1_order(first - 1));
    // a place more is kept for the priority that is none
    assert!(is_rt1_order(last) && !is_rt1_order(last + 1 + (1 << 48)));
}

#[test]
fn a_whole_second_is_no_limit() {
    let policy = Policy { rt1_budget_pct: 100, ..Policy::default() };
    let mut budget = Rt1Budget::default();
    for i in 1..=2000 {
        assert!(!rt1_charge(&mut budget, &policy, i * SECOND_NS / 1000, SECOND_NS));
        assert!(!rt1_throttled(&budget, &policy, i * SECOND_NS / 1000));
    }
}

#[test]
fn a_new_second_begins_with_nothing_used() {
    let policy = Policy { rt1_budget_pct: 50, ..Policy::default() };
    let mut budget = Rt1Budget::default();
    assert!(rt1_charge(&mut budget, &policy, SECOND_NS + 1, SECOND_NS / 2));
    assert!(!rt1_charge(&mut budget, &policy, 2 * SECOND_NS, 1));
    assert!(!rt1_throttled(&budget, &policy, 2 * SECOND_NS));
    assert!(rt1_charge(&mut budget, &policy, 2 * SECOND_NS + 9, SECOND_NS / 2));
}
