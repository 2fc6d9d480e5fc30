// SPDX-License-Identifier: GPL-2.0-only
//! Task affinity: which CPU a consumer follows to, and what if it is busy.

use artis_policy::c::{
    ARTIS_FOLLOW_NEXT as NEXT, ARTIS_FOLLOW_NOT as NOT, ARTIS_FOLLOW_QUEUE as QUEUE,
};
use artis_policy::*;

fn spot(cpu: i32, ran_ns: u64) -> Spot {
    Spot { cpu, ran_ns, ..Spot::default() }
}

fn home(cpu: i32, ran_ns: u64) -> Spot {
    Spot { home: 1, ..spot(cpu, ran_ns) }
}

#[test]
fn a_task_is_told_from_a_later_one_with_its_thread_id() {
    assert_eq!(task_id_pid(task_id(4_194_303, u64::MAX)), 4_194_303);
    assert_eq!(task_id_pid(task_id(1, 0)), 1);
    assert_ne!(task_id(77, 5_000_000), task_id(77, 5_002_000));
    assert_eq!(task_id(77, 5_000_000), task_id(77, 5_000_000));
    assert_ne!(task_id(77, 1), 0, "0 is a free entry");
}

#[test]
fn the_latest_data_counts() {
    let none = spot(-1, 0);
    assert!(spot_is_better(&spot(3, 0), &none), "anything is better than nothing");
    assert!(spot_is_better(&spot(1, 20), &spot(2, 10)));
    assert!(!spot_is_better(&spot(2, 10), &spot(1, 20)));
    assert!(spot_is_better(&spot(1, 5), &spot(2, u64::MAX - 5)), "time is a circle");
}

#[test]
fn who_has_several_producers_does_not_run_to_and_fro() {
    assert!(spot_is_better(&home(1, 10), &spot(2, 20)));
    assert!(!spot_is_better(&spot(2, 20), &home(1, 10)));
    assert!(spot_is_better(&home(1, 20), &home(1, 10)));
}

#[test]
fn a_producer_that_stopped_does_not_hold_its_consumer() {
    assert!(!follow_is_active(0, 0), "it never woke anybody");
    assert!(follow_is_active(5, 5));
    assert!(follow_is_active(u32::MAX, 3), "numbers come again");
    assert!(!follow_is_active(5, 5 + c::ARTIS_FOLLOW_TURNS));
}

/// A producer of 500 µs and more is not waited for, one of less is.
#[test]
fn the_tail_is_a_mean() {
    let after = |ns, times| (0..times).fold(0, |tail, _| tail_next(tail, ns));
    let limit = u64::from(c::ARTIS_FOLLOW_TAIL_NS);
    assert!(after(400_000, 100) < limit);
    assert!(after(600_000, 100) > limit);
    assert!(after(600_000, 1) < limit, "one is no rule");
    assert!(after(u64::MAX, 1000) <= u64::from(c::ARTIS_FOLLOW_TAIL_MAX_NS));
    let calmed = (0..20).fold(after(u64::MAX, 100), |tail, _| tail_next(tail, 10_000));
    assert!(calmed < limit, "and it is forgotten soon: {calmed}");
}

#[test]
fn a_consumer_waits_for_a_producer_of_its_rank_that_ends_soon() {
    let soon = Spot { runs: 1, ends_soon: 1, ..spot(1, 10) };
    let way = |s: &Spot, rank, curr_rank| follow_way(s, rank, curr_rank, true, true);
    assert_eq!(way(&soon, 0, 0), NEXT);
    assert_eq!(way(&soon, 0, 51), NEXT, "an NRT task waits for any");
    assert_eq!(way(&soon, 50, 50), NEXT, "as the user said");
    assert_eq!(way(&soon, 50, 49), NOT, "no RT1+ task waits for a lower one");
    assert_eq!(way(&soon, 50, 51), NOT);
    assert_eq!(way(&Spot { ends_soon: 0, ..soon }, 0, 0), NOT, "it goes on");
    assert_eq!(way(&Spot { runs: 0, ..soon }, 0, 0), NOT, "another task runs there");
}

/// For a stranger, and behind tasks that wait, it waits only if it would have to elsewhere, too.
#[test]
fn a_consumer_waits_where_no_cpu_is_idle() {
    for ((runs, ends_soon), first) in
        [((0, 0), true), ((0, 0), false), ((1, 0), true), ((1, 0), false), ((1, 1), false)]
    {
        let s = Spot { runs, ends_soon, ..spot(1, 10) };
        let waits = if first { NEXT } else { QUEUE };
        assert_eq!(follow_way(&s, 0, 0, first, false), waits, "{s:?}");
        assert_eq!(follow_way(&s, 0, 0, first, true), NOT, "an idle CPU: {s:?}");
        for (rank, curr_rank) in [(50, 0), (0, 50), (50, 50)] {
            assert_eq!(follow_way(&s, rank, curr_rank, first, false), NOT, "RT1+: {s:?}");
        }
    }
}
