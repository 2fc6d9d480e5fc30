// SPDX-License-Identifier: GPL-2.0-only
//! Tables and properties of the pure policy C.

use artis_policy::c::{
    ARTIS_LAST_NS as LAST_NS, ARTIS_PASS_MAX_NS as PASS_MAX_NS, ARTIS_SECTION_CALL as SECTION_CALL,
    ARTIS_SECTION_NONE as SECTION_NONE, ARTIS_SECTION_SLEEPING as SECTION_SLEEPING,
};
use artis_policy::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const TAU_NS: f64 = 500e6;

#[test]
fn call_classes() {
    const FUTEX_PRIVATE: u64 = 128;
    let (harmless, sleeping, futex, poll, epoll) = (1, 2, 3, 4, 6);
    assert_eq!(call_section(0, 0, 0, 0, 16), SECTION_CALL);
    assert_eq!(call_section(harmless, 0, 0, 0, 16), SECTION_NONE);
    assert_eq!(call_section(sleeping, 0, 0, 0, 16), SECTION_SLEEPING);
    // FUTEX_WAIT, FUTEX_WAKE, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET
    for (op, section) in
        [(0, SECTION_SLEEPING), (1, SECTION_CALL), (6, SECTION_CALL), (9, SECTION_SLEEPING)]
    {
        assert_eq!(call_section(futex, 0, op, 0, 16), section, "futex op {op}");
        assert_eq!(
            call_section(futex, 0, op | FUTEX_PRIVATE, 0, 16),
            section,
            "private futex op {op}"
        );
    }
    assert_eq!(call_section(poll, 0, 16, 0, 16), SECTION_SLEEPING);
    assert_eq!(call_section(poll, 0, 17, 0, 16), SECTION_CALL);
    assert_eq!(call_section(epoll, 0, 0, 16, 16), SECTION_SLEEPING);
    assert_eq!(call_section(epoll, 0, 0, 17, 16), SECTION_CALL);
    let clock = 5;
    // CLOCK_MONOTONIC, CLOCK_BOOTTIME, then the CPU-time clocks and a device's (/dev/ptp0)
    for (id, section) in [
        (1, SECTION_NONE),
        (7, SECTION_NONE),
        (2, SECTION_CALL),
        (3, SECTION_CALL),
        (-29i32 as u32 as u64, SECTION_CALL),
    ] {
        assert_eq!(call_section(clock, id, 0, 0, 16), section, "clock {id}");
    }
    // a class that only a newer daemon knows is the safe one
    assert_eq!(call_section(200, 0, 0, 0, 16), SECTION_CALL);
}

#[test]
fn weights() {
    assert_eq!(vtime_of(&bounds(0, MS), MS, inv_weight(100)), MS);
    assert_eq!(vtime_of(&bounds(0, MS), MS, inv_weight(50)), 2 * MS);
    assert_eq!(weight_in(100, 100), 100);
    assert_eq!(weight_in(100, 400), 400);
    assert_eq!(weight_in(10, 50), 5);
    assert_eq!(weight_in(1, 1), 1);
    assert_eq!(weight_in(u32::MAX, 10_000), 1_000_000);
    assert_eq!(inv_weight(0), inv_weight(1));
}

#[test]
fn slices_shrink_with_the_weight_down_to_the_floor() {
    let policy = slices();
    for (weight, cpus, slice_ns) in [
        (0, 1, 3 * MS),
        (100, 1, 3 * MS),
        (200, 1, 3 * MS / 2),
        (300, 1, MS),
        (300, 3, 3 * MS),
        (600, 3, 3 * MS / 2),
        (100_000, 1, MS / 2),
        (u64::MAX, 1024, MS / 2),
        (100, 0, MS / 2),
    ] {
        assert_eq!(slice_nrt(&policy, weight, cpus), slice_ns, "{weight} on {cpus}");
    }
}

/// Model section 5: exact at context switches. A duty of 25 % at a period of 20 ms settles at 0.25.
#[test]
fn share_of_a_periodic_task_settles_at_its_duty() {
    let mut share = RtShare::default();
    let mut now = 0;
    for _ in 0..500 {
        share_switch(&mut share, now, true);
        share_switch(&mut share, now + 5 * MS, false);
        now += 20 * MS;
    }
    let mean =
        (f64::from(share_at(&share, now)) + f64::from(share_at(&share, now - 15 * MS))) / 2.0;
    let read = mean / f64::from(SHARE_ONE);
    assert!((read - 0.25).abs() < 0.01, "{read}");
    assert_eq!(share.total_ns, 500 * 5 * MS);
}

/// A hog never switches: its share must be read rightly all the same, and 1 is never exceeded.
#[test]
fn share_of_a_hog_rises_without_a_switch() {
    let mut share = RtShare::default();
    share_switch(&mut share, MS, true);
    let after = |ms: u64| f64::from(share_at(&share, MS + ms * MS)) / f64::from(SHARE_ONE);
    assert!((after(500) - (1.0 - (-1f64).exp())).abs() < 1e-4);
    assert!(after(5_000) > 0.9999);
    assert!(share_at(&share, u64::MAX) <= SHARE_ONE);
}

fn slices() -> Policy {
    Policy { slice_nrt_ns: 3 * MS, slice_nrt_min_ns: MS / 2, ..Policy::default() }
}

fn bounds(sleep_credit_ns: u64, lead_max_ns: u64) -> Policy {
    Policy { sleep_credit_ns, lead_max_ns, ..Policy::default() }
}

proptest! {
    #[test]
    fn decay_is_the_exponential(avg in 0..=SHARE_ONE, dt_ns in 0u64..20_000_000_000) {
        let want = f64::from(avg) * (-(dt_ns as f64) / TAU_NS).exp();
        let got = f64::from(share_decay(avg, dt_ns));
        prop_assert!((got - want).abs() <= 3e-7 * f64::from(SHARE_ONE), "{} {}", got, want);
    }

    /// Decay in two steps is decay in one: the average does not depend on how often it is updated.
    #[test]
    fn decay_composes(avg in 0..=SHARE_ONE, a in 0u64..2_000_000_000, b in 0u64..2_000_000_000) {
        let once = f64::from(share_decay(avg, a + b));
        let twice = f64::from(share_decay(share_decay(avg, a), b));
        prop_assert!((once - twice).abs() <= 6e-7 * f64::from(SHARE_ONE));
    }

    #[test]
    fn decay_is_monotonic(avg in 0..=SHARE_ONE, a in 0u64..2_000_000_000, b in 0u64..2_000_000_000) {
        let (early, late) = (a.min(b), a.max(b));
        // neighbouring table entries may differ by the rounding of one step
        prop_assert!(u64::from(share_decay(avg, late)) <= u64::from(share_decay(avg, early)) + 256);
    }

    #[test]
    fn share_stays_in_bounds(switches in proptest::collection::vec((0u64..50_000_000, any::<bool>()), 1..200)) {
        let mut share = RtShare::default();
        let mut now = 0;
        let mut in_rt_ns = 0;
        for (dt, rt) in switches {
            if share.in_rt == 1 {
                in_rt_ns += dt;
            }
            now += dt;
            share_switch(&mut share, now, rt);
            prop_assert!(share_at(&share, now) <= SHARE_ONE);
        }
        share_switch(&mut share, now, false);
        prop_assert_eq!(share.total_ns, in_rt_ns);
    }

    /// Never a longer slice for more tasks, nor a shorter one for more CPUs.
    #[test]
    fn slices_follow_weight_and_cpus(
        weight in 0u64..10_000_000_000, more in 0u64..1_000_000, cpus in 1u32..1024, more_cpus in 0u32..64,
    ) {
        let policy = slices();
        let slice = slice_nrt(&policy, weight, cpus);
        prop_assert!((policy.slice_nrt_min_ns..=policy.slice_nrt_ns).contains(&slice));
        prop_assert!(slice_nrt(&policy, weight + more, cpus) <= slice);
        prop_assert!(slice_nrt(&policy, weight, cpus + more_cpus) >= slice);
    }

    /// A run moves the clock as it moves the virtual time of everybody when they share it by
    /// weight; never slower than if fifty tasks of nice 0 were runnable for each CPU.
    #[test]
    fn clock_keeps_the_pace_of_the_shares(
        run_ns in 0u64..30_000_000_000, tasks in 0u64..200, weight in 1u64..10_000, cpus in 1u32..64,
    ) {
        let counted = (tasks * weight).clamp(1, 5_000 * u64::from(cpus));
        prop_assert_eq!(clock_step(run_ns, tasks * weight, cpus), run_ns * 100 / counted);
    }

    /// Where one task runs alone, the clock moves as its virtual time: it gets no further ahead.
    #[test]
    fn alone_a_task_stays_with_its_clock(run_ns in 0u64..30_000_000_000, weight in 1u32..5_000) {
        let vtime = vtime_of(&bounds(0, u64::MAX >> 3), run_ns, inv_weight(weight));
        let step = clock_step(run_ns, u64::from(weight), 1);
        // 20 fraction bits of the factor
        prop_assert!(vtime <= step && step - vtime <= run_ns / (1 << 20) + 1, "{vtime} {step}");
    }

    /// Neither clock is ahead of the other by more than the lead, and no more is forgiven than that.
    #[test]
    fn the_offset_forgives_what_is_beyond_the_lead(
        behind: u64, offset: u64, by: i64, lead in 0u64..1_000_000_000,
    ) {
        let ahead = behind.wrapping_add(offset).wrapping_add_signed(by);
        let next = offset_next(&bounds(0, lead), ahead, behind, offset);
        let left = ahead.wrapping_sub(next).wrapping_sub(behind) as i64;
        prop_assert_eq!(left, by.clamp(-(lead as i64), lead as i64));
        prop_assert_eq!(offset_next(&bounds(0, lead), ahead, behind, next), next, "once is enough");
    }

    /// Near the lead, and wherever on the circle of times the two clocks are.
    #[test]
    fn the_offset_stays_within_the_lead(
        behind: u64, offset: u64, turn: u64, lead in 0u64..1_000_000_000, near in -3i64..=3, sign: bool,
    ) {
        let policy = bounds(0, lead);
        let by = if sign { lead as i64 + near } else { near - lead as i64 };
        let ahead = behind.wrapping_add(offset).wrapping_add_signed(by);
        let next = offset_next(&policy, ahead, behind, offset);
        prop_assert_eq!(next == offset, by.unsigned_abs() <= lead);
        let (ahead, behind) = (ahead.wrapping_add(turn), behind.wrapping_add(turn));
        prop_assert_eq!(offset_next(&policy, ahead, behind, offset), next);
    }

    /// A task whose weight asks for more than a CPU stays within the credit of the clock; others keep
    /// what they have run.
    #[test]
    fn no_task_falls_behind_the_clock_without_end(
        clock: u64, by in -1_000_000_000i64..1_000_000_000, credit in 0u64..1_000_000_000,
    ) {
        let next = vtime_ran(&bounds(credit, 0), clock.wrapping_add_signed(by), clock);
        prop_assert_eq!(next.wrapping_sub(clock) as i64, by.max(-(credit as i64)));
    }

    /// Calm tasks come last while the offset forgives them what they have had more, and not for a
    /// difference as small as slices make.
    #[test]
    fn who_is_forgiven_comes_last(
        behind: u64, offset: u64, lead in 2u64..1_000_000_000, by in 0u64..4_000_000_000,
    ) {
        let policy = bounds(0, lead);
        let ahead = behind.wrapping_add(offset).wrapping_add(by);
        let next = offset_next(&policy, ahead, behind, offset);
        prop_assert_eq!(is_well_ahead(&policy, ahead, behind, next), by >= lead / 2);
        let late = behind.wrapping_add(offset).wrapping_sub(by);
        prop_assert!(!is_well_ahead(&policy, late, behind, offset));
    }

    /// A queue that was passed over for too long is before all others that were not, RT1+ tasks
    /// aside, and among such queues the order stays.
    #[test]
    fn a_queue_is_passed_over_for_so_long_only(
        now: u64, by in -60_000_000_000i64..60_000_000_000, passed_ns in 0u64..200_000_000,
    ) {
        let order = now.wrapping_add_signed(by);
        let place = passed_order(order, passed_ns);
        if passed_ns > u64::from(PASS_MAX_NS) {
            let last = place.wrapping_add(LAST_NS);
            prop_assert!((last.wrapping_sub(now) as i64) < -60_000_000_000);
            prop_assert_eq!(passed_order(order.wrapping_add(1), passed_ns), place.wrapping_add(1));
        } else {
            prop_assert_eq!(place, order);
        }
    }

    /// Nobody who waits is ahead of the clock by more than the lead; the clock never goes back.
    #[test]
    fn clock_catches_up(clock: u64, ahead in -1_000_000_000i64..1_000_000_000, lead in 0u64..1_000_000_000) {
        let next = clock_catch_up(&bounds(0, lead), clock, clock.wrapping_add_signed(ahead));
        prop_assert_eq!(next.wrapping_sub(clock) as i64, (ahead - lead as i64).max(0));
    }

    /// Whatever the clock, the result lies between the credit and the lead, and inside it stays put.
    #[test]
    fn clamp_bounds(vtime: u64, clock: u64, credit in 0u64..1_000_000_000, lead in 0u64..1_000_000_000) {
        let r = vtime_clamp(&bounds(credit, lead), vtime, clock, inv_weight(100));
        let offset = r.wrapping_sub(clock) as i64;
        prop_assert!(-(credit as i64) <= offset && offset <= lead as i64);
        let wanted = vtime.wrapping_sub(clock) as i64;
        if -(credit as i64) <= wanted && wanted <= lead as i64 {
            prop_assert_eq!(r, vtime);
        }
    }

    /// As far as one is after the other, it is moved to that one, and not behind it.
    #[test]
    fn what_is_after_is_so_far_after(vtime: u64, clock: u64) {
        let place = vtime.wrapping_sub(after(vtime, clock));
        prop_assert_eq!(place, if before(clock, vtime) { clock } else { vtime });
    }

    /// Who serves the CPU is before everybody's virtual time.
    #[test]
    fn the_first_are_before_all(vtime: u64, other: u64, clock: u64, credit in 0u64..1_000_000_000) {
        let policy = bounds(credit, 1_000_000_000);
        let place = vtime.wrapping_sub(first_advance(&policy, vtime, clock));
        prop_assert!(before(place, vtime_clamp(&policy, other, clock, inv_weight(100))));
    }

    /// The lead is own run time: a task of weight 50 may be twice as far ahead in virtual time, the
    /// lightest eight times, and not more: it must get its turn.
    #[test]
    fn lead_scales_with_weight(clock: u64, lead in 1u64..1_000_000_000) {
        let far = clock.wrapping_add(u64::MAX / 4);
        for (weight, leads) in [(100, 1), (50, 2), (25, 4), (10, 8), (1, 8)] {
            let latest = vtime_clamp(&bounds(0, lead), far, clock, inv_weight(weight));
            prop_assert_eq!(latest.wrapping_sub(clock), lead * leads);
        }
    }

    #[test]
    fn heavier_tasks_age_slower(light in 1u32..10_000, more in 0u32..10_000, run_ns in 0u64..30_000_000_000) {
        let aged = |weight| vtime_of(&bounds(0, u64::MAX >> 3), run_ns, inv_weight(weight));
        prop_assert!(aged(light + more) <= aged(light));
    }

    /// However light a task is, or for how long it ran, one run keeps it waiting for a bounded time.
    #[test]
    fn a_run_ages_by_so_much_only(weight in 1u32..10_000, run_ns in 0u64..30_000_000_000, lead in 1u64..1_000_000_000) {
        let aged = vtime_of(&bounds(0, lead), run_ns, inv_weight(weight));
        let exact = (run_ns * u64::from(inv_weight(weight))) >> 20;
        prop_assert_eq!(aged, exact.min(8 * lead));
    }

    #[test]
    fn preemption_needs_the_margin(margin in 0u64..10_000_000, vtime: u64, gap in 0u64..1_000_000_000) {
        let policy = Policy { preempt_margin_ns: margin, ..Policy::default() };
        prop_assert_eq!(preempts(&policy, vtime, vtime.wrapping_add(gap)), gap > margin);
    }
}
