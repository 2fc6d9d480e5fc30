// SPDX-License-Identifier: GPL-2.0-only
//! Tables and properties of the pure policy C.

use artis_policy::c::{
    ARTIS_SECTION_CALL as SECTION_CALL, ARTIS_SECTION_NONE as SECTION_NONE,
    ARTIS_SECTION_SLEEPING as SECTION_SLEEPING,
};
use artis_policy::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const TAU_NS: f64 = 500e6;

fn all_places() -> impl Iterator<Item = PlaceIn> {
    (0..4u32).flat_map(|section| {
        (0..512u32).map(move |b| PlaceIn {
            section,
            woken: b & 1 != 0,
            calm: b & 2 != 0,
            kernel: b & 4 != 0,
            unsettled: b & 8 != 0,
            on_rt: b & 16 != 0,
            put_back: b & 32 != 0,
            displaced: b & 64 != 0,
            ahead: b & 128 != 0,
            rt1: b & 256 != 0,
        })
    })
}

/// The promise, over every input: nobody in an endangering section goes to an RT CPU.
#[test]
fn no_endangering_section_is_placed_on_an_rt_cpu() {
    for facts in all_places().filter(|f| f.section >= SECTION_CALL) {
        assert_eq!(place(&facts), Place::Nrt, "{facts:?}");
    }
}

#[test]
fn only_calm_settled_user_tasks_get_rt_cpus() {
    for facts in all_places() {
        if place(&facts) != Place::Nrt {
            assert!(facts.calm && !facts.kernel && !facts.unsettled, "{facts:?}");
        }
    }
}

#[test]
fn whoever_wakes_gets_an_rt_cpu_only_from_the_sleeping_class() {
    for facts in all_places().filter(|f| f.woken) {
        if place(&facts) != Place::Nrt {
            assert_eq!(facts.section, SECTION_SLEEPING, "{facts:?}");
        }
    }
    let calm = PlaceIn { section: SECTION_SLEEPING, woken: true, calm: true, ..Default::default() };
    assert_eq!(place(&calm), Place::RtIdle);
}

#[test]
fn an_rt1_task_that_computes_goes_to_an_rt_cpu_whatever_it_has_had() {
    let computes =
        |f: &PlaceIn| f.calm && !f.kernel && !f.unsettled && !f.woken && f.section == SECTION_NONE;
    for facts in all_places().filter(|f| f.rt1 && computes(f)) {
        assert_eq!(place(&facts), Place::RtIdle, "{facts:?}");
    }
}

#[test]
fn a_computing_task_stays_until_it_is_ahead_and_leaves_when_displaced() {
    let on_rt = PlaceIn { calm: true, on_rt: true, ..Default::default() };
    assert_eq!(place(&on_rt), Place::RtStay);
    assert_eq!(place(&PlaceIn { ahead: true, ..on_rt }), Place::Nrt);
    assert_eq!(place(&PlaceIn { ahead: true, put_back: true, ..on_rt }), Place::RtStay);
    assert_eq!(place(&PlaceIn { displaced: true, put_back: true, ..on_rt }), Place::Nrt);
    assert_eq!(place(&PlaceIn { on_rt: false, ..on_rt }), Place::RtIdle);
}

#[test]
fn call_classes() {
    const FUTEX_PRIVATE: u64 = 128;
    let (harmless, sleeping, futex, poll) = (1, 2, 3, 4);
    assert_eq!(call_section(0, 0, 0, 16), SECTION_CALL);
    assert_eq!(call_section(harmless, 0, 0, 16), SECTION_NONE);
    assert_eq!(call_section(sleeping, 0, 0, 16), SECTION_SLEEPING);
    // FUTEX_WAIT, FUTEX_WAKE, FUTEX_LOCK_PI, FUTEX_WAIT_BITSET
    for (op, section) in
        [(0, SECTION_SLEEPING), (1, SECTION_CALL), (6, SECTION_CALL), (9, SECTION_SLEEPING)]
    {
        assert_eq!(call_section(futex, 0, op, 16), section, "futex op {op}");
        assert_eq!(
            call_section(futex, 0, op | FUTEX_PRIVATE, 16),
            section,
            "private futex op {op}"
        );
    }
    assert_eq!(call_section(poll, 0, 16, 16), SECTION_SLEEPING);
    assert_eq!(call_section(poll, 0, 17, 16), SECTION_CALL);
    let clock = 5;
    // CLOCK_MONOTONIC, CLOCK_BOOTTIME, then the CPU-time clocks and a device's (/dev/ptp0)
    for (id, section) in [
        (1, SECTION_NONE),
        (7, SECTION_NONE),
        (2, SECTION_CALL),
        (3, SECTION_CALL),
        (-29i32 as u32 as u64, SECTION_CALL),
    ] {
        assert_eq!(call_section(clock, id, 0, 16), section, "clock {id}");
    }
    // a class that only a newer daemon knows is the safe one
    assert_eq!(call_section(200, 0, 0, 16), SECTION_CALL);
}

#[test]
fn weights() {
    assert_eq!(vtime_of(MS, inv_weight(100)), MS);
    assert_eq!(vtime_of(MS, inv_weight(50)), 2 * MS);
    assert_eq!(weight_in(100, 100), 100);
    assert_eq!(weight_in(100, 400), 400);
    assert_eq!(weight_in(10, 50), 5);
    assert_eq!(weight_in(1, 1), 1);
    assert_eq!(weight_in(u32::MAX, 10_000), 1_000_000);
    assert_eq!(inv_weight(0), inv_weight(1));
}

#[test]
fn slices_shrink_with_the_queue_down_to_the_floor() {
    let policy = Policy { slice_nrt_ns: 3 * MS, slice_nrt_min_ns: MS / 2, ..Policy::default() };
    for (waiting, slice_ns) in [(0, 3 * MS), (1, 3 * MS), (3, MS), (1000, MS / 2)] {
        assert_eq!(slice_nrt(&policy, waiting), slice_ns);
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
            prop_assert!(share.avg <= SHARE_ONE);
        }
        prop_assert_eq!(share.total_ns, in_rt_ns);
    }

    /// A run moves the clock as it moves the virtual time of everybody when they share it by
    /// weight; never slower than if fifty tasks of nice 0 were runnable for each CPU.
    #[test]
    fn clock_keeps_the_pace_of_the_shares(
        clock: u64, run_ns in 0u64..30_000_000_000, tasks in 1u64..200, weight in 1u64..10_000, cpus in 1u32..64,
    ) {
        let moved = clock_pace(clock, run_ns, tasks * weight, cpus).wrapping_sub(clock);
        let counted = (tasks * weight).min(5_000 * u64::from(cpus));
        prop_assert_eq!(moved, run_ns * 100 / counted);
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

    /// A reader is queued at the clock if it is ahead of it, else where it would be anyway.
    #[test]
    fn readers_are_not_ahead(vtime: u64, clock: u64) {
        let place = vtime.wrapping_sub(reader_advance(vtime, clock));
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
    /// lightest five times, and not more: it must get its turn.
    #[test]
    fn lead_scales_with_weight(clock: u64, lead in 1u64..1_000_000_000) {
        let far = clock.wrapping_add(u64::MAX / 4);
        for (weight, leads) in [(100, 1), (50, 2), (25, 4), (10, 5), (1, 5)] {
            let latest = vtime_clamp(&bounds(0, lead), far, clock, inv_weight(weight));
            prop_assert_eq!(latest.wrapping_sub(clock), lead * leads);
        }
    }

    #[test]
    fn heavier_tasks_age_slower(light in 1u32..10_000, more in 0u32..10_000, run_ns in 0u64..30_000_000_000) {
        prop_assert!(vtime_of(run_ns, inv_weight(light + more)) <= vtime_of(run_ns, inv_weight(light)));
    }

    #[test]
    fn preemption_needs_the_margin(margin in 0u64..10_000_000, vtime: u64, gap in 0u64..1_000_000_000) {
        let policy = Policy { preempt_margin_ns: margin, ..Policy::default() };
        prop_assert_eq!(preempts(&policy, vtime, vtime.wrapping_add(gap)), gap > margin);
    }
}
