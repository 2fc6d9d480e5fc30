// SPDX-License-Identifier: GPL-2.0-only
//! Task affinity: which CPU a consumer follows to, and what if it is busy.

use artis_policy::*;
use proptest::prelude::*;

const GO: u32 = c::ARTIS_FOLLOW_GO;
const NOT: u32 = c::ARTIS_FOLLOW_NOT;
const WAIT: u32 = c::ARTIS_FOLLOW_WAIT;
const PREEMPT: u32 = c::ARTIS_FOLLOW_PREEMPT;

fn spot(cpu: i32, ran_ns: u64) -> Spot {
    Spot { cpu, ran_ns, ..Spot::default() }
}

fn home(cpu: i32, ran_ns: u64) -> Spot {
    Spot { home: 1, ..spot(cpu, ran_ns) }
}

#[test]
fn a_task_is_told_from_a_later_one_with_its_thread_id() {
    assert_eq!(who_pid(who(4_194_303, u64::MAX)), 4_194_303);
    assert_eq!(who_pid(who(1, 0)), 1);
    assert_ne!(who(77, 5_000_000), who(77, 5_002_000));
    assert_eq!(who(77, 5_000_000), who(77, 5_000_000));
    assert_ne!(who(77, 1), 0, "0 is a free entry");
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

/// A producer of the consumer runs there, and sleeps soon; another NRT CPU is idle.
fn behind_its_producer() -> FollowIn {
    FollowIn {
        ext_runs: true,
        first: true,
        producer: true,
        ends_soon: true,
        spare: true,
        ..FollowIn::default()
    }
}

#[test]
fn an_nrt_consumer_waits_for_what_ends_soon() {
    let soon = behind_its_producer();
    assert_eq!(follow_way(&soon), WAIT);
    for (elsewhere, why) in [
        (FollowIn { ends_soon: false, ..soon }, "the producer goes on, another CPU is idle"),
        (FollowIn { producer: false, ..soon }, "a stranger runs there, another CPU is idle"),
        (FollowIn { first: false, ..soon }, "others come first there"),
        (FollowIn { held: true, ..soon }, "a real-time task runs there"),
        (FollowIn { ext_runs: false, ..soon }, "another CPU is idle"),
    ] {
        assert_eq!(follow_way(&elsewhere), NOT, "{why}");
    }
    assert_eq!(follow_way(&FollowIn { idle: true, ..FollowIn::default() }), GO);
}

#[test]
fn where_all_have_to_wait_it_waits_near_its_data() {
    let stranger = FollowIn { producer: false, spare: false, ..behind_its_producer() };
    assert_eq!(follow_way(&stranger), WAIT);
    assert_eq!(follow_way(&FollowIn { behind: true, ..stranger }), PREEMPT);
    let later = FollowIn { first: false, ..stranger };
    assert_eq!(follow_way(&later), NOT, "others come first, here and elsewhere");
    assert_eq!(follow_way(&FollowIn { first: true, ext_runs: false, ..later }), NOT);
    assert_eq!(follow_way(&FollowIn { held: true, ..later }), NOT, "who knows for how long");
    assert_eq!(follow_way(&FollowIn { rank: 1, ..later }), NOT);
    let rt1_stranger = FollowIn { curr_rank: 1, behind: true, ..stranger };
    assert_eq!(follow_way(&rt1_stranger), NOT, "who knows for how long");
}

#[test]
fn priorities_come_first() {
    let at = |rank, curr_rank| FollowIn { rank, curr_rank, ..behind_its_producer() };
    assert_eq!(follow_way(&at(50, 0)), PREEMPT);
    assert_eq!(follow_way(&at(50, 49)), PREEMPT);
    assert_eq!(follow_way(&at(50, 50)), WAIT, "as the user said");
    assert_eq!(follow_way(&at(50, 51)), NOT);
    assert_eq!(follow_way(&at(0, 51)), WAIT);
    let stranger = FollowIn { producer: false, ..at(50, 10) };
    assert_eq!(follow_way(&stranger), NOT, "an idle CPU disturbs nobody");
    assert_eq!(follow_way(&FollowIn { spare: false, ..stranger }), PREEMPT);
}

fn any_in() -> impl Strategy<Value = FollowIn> {
    let flags = prop::array::uniform8(any::<bool>());
    (0..4u32, 0..4u32, flags).prop_map(|(rank, curr_rank, f)| FollowIn {
        rank,
        curr_rank,
        idle: f[0],
        ext_runs: f[1],
        first: f[2],
        producer: f[3],
        ends_soon: f[4],
        spare: f[5],
        behind: f[6],
        held: f[7],
    })
}

proptest! {
    #[test]
    fn nobody_higher_makes_way_and_no_rt1_waits_behind_a_lower(facts in any_in()) {
        let way = follow_way(&facts);
        if way == PREEMPT {
            prop_assert!(facts.rank >= facts.curr_rank && facts.ext_runs && facts.first);
            prop_assert!(facts.rank > facts.curr_rank || (facts.rank == 0 && facts.behind));
        }
        if way == WAIT && facts.rank > 0 {
            prop_assert!(facts.rank == facts.curr_rank && facts.producer && facts.ends_soon);
        }
        if facts.held && !facts.idle {
            prop_assert_eq!(way, NOT);
        }
        if !facts.idle && (!facts.first || !facts.ext_runs) {
            prop_assert_eq!(way, NOT, "its place there would not be the next");
        }
        if way == WAIT && facts.spare {
            prop_assert!(facts.producer && facts.ends_soon, "a CPU is idle");
        }
    }
}
