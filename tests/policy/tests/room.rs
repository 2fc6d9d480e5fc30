// SPDX-License-Identifier: GPL-2.0-only
//! Where a task may wait, who looks then, and what a CPU takes next: policy/room.h, over all inputs.

use artis_policy::c::{
    ARTIS_MAX_GROUPS as MAX_GROUPS, ARTIS_NEXT_NONE as NOTHING, ARTIS_NEXT_STAY as STAY,
    ARTIS_QUEUE_BOUND as BOUND, ARTIS_QUEUE_CALM as CALM, ARTIS_QUEUE_OWN as OWN,
    ARTIS_ROUSE_IDLE as ROUSE_IDLE, ARTIS_ROUSE_NONE as ROUSE_NONE, ARTIS_ROUSE_NRT as ROUSE_NRT,
    ARTIS_ROUSE_PREEMPT as ROUSE_PREEMPT, ARTIS_ROUSE_SELF as ROUSE_SELF,
};
use artis_policy::{
    Facts, Look, RouseIn, is_rt1_order, may_use_rt, may_wait, next, queue_of, rouse, rt1_order,
};

const QUEUES: [u32; 3] = [OWN, BOUND, CALM];
/// The CPU of each task's run queue; as a group it is one that no task here knows.
const CPU: u32 = 5;

/// All sets of three groups, the last of which is the last that there may be.
fn group_sets() -> impl Iterator<Item = u64> {
    (0..8).map(|bits| (bits & 3) | (bits >> 2) << (MAX_GROUPS - 1))
}

fn all_facts() -> impl Iterator<Item = Facts> {
    (0..64u32).flat_map(|b| {
        group_sets().flat_map(move |nrt_groups| {
            group_sets().map(move |rt_groups| Facts {
                nrt_groups,
                rt_groups,
                cpu: CPU,
                pinned: b & 1 != 0,
                calm: b & 2 != 0,
                inside: b & 4 != 0,
                kernel: b & 8 != 0,
                unsettled: b & 16 != 0,
                rt_forbidden: b & 32 != 0,
            })
        })
    })
}

/// Where `facts` may wait: of all queues and places, and some numbers that are no group's.
fn places(facts: &Facts) -> impl Iterator<Item = (u32, u32)> {
    let numbers = || (0..MAX_GROUPS + 3).chain([1 << 31, u32::MAX]);
    QUEUES
        .into_iter()
        .flat_map(move |queue| numbers().map(move |place| (queue, place)))
        .filter(|(queue, place)| may_wait(facts, *queue, *place))
}

fn holds(groups: u64, group: u32) -> bool {
    group < MAX_GROUPS && groups & (1 << group) != 0
}

/// The promise, over all inputs: a task that is in the kernel, or may be soon, or that no RT CPU may
/// run, does not wait where RT CPUs take from, if it has another choice.
#[test]
fn no_task_waits_for_rt_cpus_in_the_kernel_or_in_vain() {
    for facts in all_facts().filter(|f| f.nrt_groups != 0) {
        let near = facts.inside || facts.kernel || facts.unsettled || !facts.calm;
        let kept_off = near || facts.rt_forbidden || facts.rt_groups == 0;
        assert_eq!(may_use_rt(&facts), !kept_off, "{facts:?}");
        if kept_off {
            assert_ne!(queue_of(&facts), CALM, "{facts:?}");
            assert!(places(&facts).all(|(queue, _)| queue != CALM), "{facts:?}");
        }
    }
}

#[test]
fn a_calm_task_and_one_without_nrt_cpus_wait_in_the_calm_queue() {
    for facts in all_facts().filter(|f| !f.pinned) {
        let queue = if may_use_rt(&facts) { CALM } else { BOUND };
        assert_eq!(queue_of(&facts), queue, "{facts:?}");
        assert!(facts.nrt_groups != 0 || queue == CALM, "{facts:?}");
    }
}

#[test]
fn a_task_waits_only_where_a_cpu_of_its_affinity_takes() {
    for facts in all_facts().filter(|f| !f.pinned) {
        for (queue, group) in places(&facts) {
            let nrt = holds(facts.nrt_groups, group);
            let takes = match queue {
                BOUND => nrt,
                CALM => nrt || holds(facts.rt_groups, group),
                _ => false,
            };
            assert!(takes, "{queue} of {group}: {facts:?}");
            // a real-time task could hold all RT CPUs
            assert!(nrt || facts.nrt_groups == 0, "{queue} of {group}: {facts:?}");
        }
    }
}

#[test]
fn a_pinned_task_waits_for_its_cpu_alone() {
    for facts in all_facts().filter(|f| f.pinned) {
        assert_eq!(queue_of(&facts), OWN, "{facts:?}");
        assert_eq!(places(&facts).collect::<Vec<_>>(), [(OWN, CPU)], "{facts:?}");
    }
}

#[test]
fn there_is_always_a_place_in_the_queue_of_a_task() {
    for facts in all_facts().filter(|f| f.pinned || f.nrt_groups | f.rt_groups != 0) {
        let its = queue_of(&facts);
        assert!(places(&facts).any(|(queue, _)| queue == its), "{facts:?}");
    }
}

fn all_rouse_ins() -> impl Iterator<Item = RouseIn> {
    (0..16u32).map(|b| RouseIn {
        here: b & 1 != 0,
        last: b & 2 != 0,
        idle: b & 4 != 0,
        behind: b & 8 != 0,
    })
}

#[test]
fn only_a_cpu_that_looks_by_itself_is_left_alone() {
    for facts in all_rouse_ins() {
        let way = rouse(&facts);
        if way == ROUSE_NONE {
            assert!(facts.here && !facts.last, "{facts:?}");
            assert!(!facts.idle && !facts.behind, "{facts:?}");
        }
        // where it may not run, no CPU looks by itself
        assert_eq!(way == ROUSE_NRT, !(facts.here || facts.idle || facts.behind), "{facts:?}");
    }
}

#[test]
fn a_cpu_is_roused_only_if_it_was_found_and_an_idle_one_first() {
    for facts in all_rouse_ins() {
        let found = facts.idle || facts.behind;
        let alone = facts.here && facts.last && !found;
        assert_eq!(rouse(&facts) == ROUSE_SELF, alone, "{facts:?}");
        assert_eq!(rouse(&facts) == ROUSE_IDLE, facts.idle, "{facts:?}");
        assert_eq!(rouse(&facts) == ROUSE_PREEMPT, facts.behind && !facts.idle, "{facts:?}");
    }
}

/// What a CPU may see: of virtual times those around 0, two RT1+ priorities, and two of one.
fn all_looks() -> impl Iterator<Item = Look> {
    let orders = || {
        let rt1 = [rt1_order(98, 0), rt1_order(7, 0), rt1_order(7, 5_000)];
        rt1.into_iter().chain([u64::MAX, 0, 1, 2, 4])
    };
    orders().flat_map(move |own| {
        orders().flat_map(move |bound| {
            orders().flat_map(move |calm| {
                orders().flat_map(move |order| {
                    (0..128u32).map(move |b| Look {
                        first: [own, bound, calm],
                        order,
                        lead_ns: if b & 64 != 0 { 2 } else { 0 },
                        waits: b & 7,
                        rt: b & 8 != 0,
                        may_stay: b & 16 != 0,
                        pinned: b & 32 != 0,
                    })
                })
            })
        })
    })
}

fn first(look: &Look, queue: u32) -> u64 {
    look.first[queue as usize]
}

/// May the CPU take from `queue`, where somebody waits?
fn takes(look: &Look, queue: u32) -> bool {
    look.waits & (1 << queue) != 0 && !(look.rt && queue == BOUND)
}

/// The order as a number: no time here is further from 0 than signed ones reach.
fn place(order: u64) -> i64 {
    order as i64
}

/// Place of the first of all that it may take.
fn earliest(look: &Look) -> Option<i64> {
    QUEUES.into_iter().filter(|q| takes(look, *q)).map(|q| place(first(look, q))).min()
}

fn queue_taken(taken: u32) -> Option<u32> {
    QUEUES.contains(&taken).then_some(taken)
}

/// Place of what runs next; `None`: nothing does.
fn runs_next(look: &Look) -> Option<i64> {
    match next(look) {
        STAY => Some(place(look.order)),
        taken => queue_taken(taken).map(|queue| place(first(look, queue))),
    }
}

#[test]
fn no_cpu_takes_from_a_queue_where_nobody_waits_nor_an_rt_cpu_from_the_bound_one() {
    for look in all_looks() {
        let taken = next(&look);
        assert!(queue_taken(taken).is_none_or(|queue| takes(&look, queue)), "{taken}: {look:?}");
    }
}

#[test]
fn no_cpu_idles_while_somebody_waits_for_it() {
    for look in all_looks() {
        let taken = next(&look);
        assert!(taken != STAY || look.may_stay, "{look:?}");
        let nothing = earliest(&look).is_none() && !look.may_stay;
        assert_eq!(taken == NOTHING, nothing, "{look:?}");
    }
}

/// How far the task that ran may be behind the first of all that wait.
fn lead_ns(look: &Look, earliest: i64) -> i64 {
    let guest = look.rt && !look.pinned && !is_rt1_order(look.order);
    // of equal places that of the own queue counts
    let calm = takes(look, CALM) && place(first(look, CALM)) == earliest;
    let own = takes(look, OWN) && place(first(look, OWN)) == earliest;
    let leads = guest && calm && !own && !is_rt1_order(first(look, CALM));
    if leads { look.lead_ns as i64 } else { 0 }
}

#[test]
fn a_cpu_takes_the_first_of_all_that_wait_for_it_and_leaves_a_guest_its_lead() {
    for look in all_looks() {
        let Some(earliest) = earliest(&look) else { continue };
        let stays = look.may_stay && place(look.order) <= earliest + lead_ns(&look, earliest);
        assert_eq!(next(&look) == STAY, stays, "{look:?}");
        if !stays {
            assert_eq!(runs_next(&look), Some(earliest), "{look:?}");
        }
    }
}

/// Who may run on one RT CPU only does not starve who may run on some of them only, nor the reverse.
#[test]
fn pinned_tasks_and_guests_of_an_rt_cpu_take_turns() {
    for pinned in [false, true] {
        let runs = Look { rt: true, may_stay: true, pinned, order: 10, ..Look::default() };
        let queue = if pinned { CALM } else { OWN };
        let mut waits = Look { waits: 1 << queue, ..runs };
        waits.first[queue as usize] = 9;
        assert_eq!(next(&waits), queue);
        waits.first[queue as usize] = 10;
        assert_eq!(next(&waits), STAY);
    }
}

#[test]
fn rt1_goes_before_all_others_by_priority() {
    for look in all_looks() {
        let runs = look.may_stay.then(|| place(look.order));
        let Some(first) = earliest(&look).into_iter().chain(runs).min() else { continue };
        if is_rt1_order(first as u64) {
            assert_eq!(runs_next(&look), Some(first), "{look:?}");
        }
    }
}

/// So a queue that is not compared with anything need not be looked into.
#[test]
fn the_place_of_who_does_not_wait_or_waits_alone_does_not_matter() {
    for look in all_looks().filter(|l| l.first == [l.first[0]; 3]) {
        let others = [u64::MAX / 2, rt1_order(98, 0), 0];
        let waiting = QUEUES.into_iter().filter(|q| takes(&look, *q)).count();
        for queue in QUEUES {
            let alone = waiting == 1 && !look.may_stay;
            if takes(&look, queue) && !alone {
                continue;
            }
            for other in others {
                let mut changed = look;
                changed.first[queue as usize] = other;
                assert_eq!(next(&changed), next(&look), "{look:?}");
            }
        }
    }
}

#[test]
fn whether_it_is_pinned_and_the_lead_matter_on_rt_cpus_only() {
    for look in all_looks().filter(|l| !l.rt) {
        let other = Look { pinned: !look.pinned, lead_ns: 1 << 40, ..look };
        assert_eq!(next(&look), next(&other), "{look:?}");
    }
}

#[test]
fn when_all_has_been_tried_in_vain_it_stays_or_has_nothing() {
    for mut look in all_looks() {
        for _ in QUEUES {
            let Some(queue) = queue_taken(next(&look)) else { break };
            look.waits &= !(1 << queue);
        }
        assert_eq!(queue_taken(next(&look)), None, "{look:?}");
    }
}
