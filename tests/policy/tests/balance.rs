// SPDX-License-Identifier: GPL-2.0-only
//! Filter, select, steal: tables for each migration, and what no haul may do.

use artis_policy::c::{
    ARTIS_MIGRATION_FILL as FILL, ARTIS_MIGRATION_NRT_NRT as NRT_NRT,
    ARTIS_MIGRATION_RETURN as RETURN, ARTIS_MIGRATION_RT_NRT as RT_NRT,
    ARTIS_MIGRATION_RT_RT as RT_RT,
};
use artis_policy::*;
use proptest::prelude::*;

const ALL: [Migration; 5] = [NRT_NRT, RT_NRT, RETURN, FILL, RT_RT];

fn policy() -> Policy {
    Policy { imbalance_pct: 25, ..Policy::default() }
}

/// A group of one NRT CPU with so many tasks of nice 0, all but one of which wait; two are calm.
fn nrt(tasks: u64) -> Seat {
    Seat {
        weight: 100 * tasks,
        m: 1 << 20,
        queued: tasks.saturating_sub(1) as u32,
        calm_waiting: 1,
        ..Seat::default()
    }
}

/// An RT CPU whose real-time share is 1 - 1/m.
fn rt(tasks: u64, m: u32) -> Seat {
    Seat { m: m << 20, rt: 1, calm_waiting: 0, ..nrt(tasks) }
}

const CALM: Candidate = Candidate {
    weight: 100,
    rt1: 0,
    calm: 1,
    in_section: 0,
    kernel: 0,
    settled: 1,
    allowed: 1,
    rt_only: 0,
};

fn passes(migration: Migration, from: &Seat, to: &Seat) -> bool {
    filter(migration, from, to, &policy())
}

/// Moves tasks of these weights as a pass does, until the haul is done; returns how many.
fn moved(migration: Migration, from: &Seat, to: &Seat, weights: &[u32]) -> usize {
    let mut haul = haul_of(migration, from, to);
    let mut moved = 0;
    for &weight in weights {
        if !haul_is_done(&haul) && steals(migration, &Candidate { weight, ..CALM }, &haul) {
            haul_took(&mut haul, weight);
            moved += 1;
        }
    }
    moved
}

#[test]
fn each_migration_is_between_its_own_kinds_of_seat() {
    for migration in ALL {
        for (from_rt, to_rt) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let from = Seat { rt: from_rt, rt1_waiting: 1, ..nrt(9) };
            let to = Seat { rt: to_rt, ..nrt(0) };
            let right = match migration {
                NRT_NRT => (0, 0),
                RT_NRT => (1, 0),
                RT_RT => (1, 1),
                _ => (0, 1),
            } == (from_rt, to_rt);
            assert_eq!(passes(migration, &from, &to), right, "{migration} {from_rt} {to_rt}");
        }
    }
}

#[test]
fn below_the_threshold_nothing_moves() {
    for (migration, from, to) in [
        (NRT_NRT, nrt(5), nrt(4)),
        (RT_NRT, rt(5, 1), nrt(4)),
        (FILL, nrt(5), rt(4, 1)),
        (RT_RT, rt(5, 1), rt(4, 1)),
    ] {
        assert!(!passes(migration, &from, &to), "{migration}: 5 to 4 is 25 %");
        assert!(passes(migration, &Seat { weight: 501, ..from }, &to), "{migration}");
        assert!(!passes(migration, &Seat { weight: 501, queued: 0, ..from }, &to), "none waits");
    }
}

#[test]
fn an_idle_rt_cpu_and_a_dry_nrt_cpu_are_served_whatever_the_loads() {
    let heavy_m = rt(0, 65);
    for (migration, from) in [(FILL, nrt(2)), (RT_RT, rt(2, 1))] {
        assert!(passes(migration, &from, &heavy_m));
        assert_eq!(moved(migration, &from, &heavy_m, &[100, 100]), 1);
    }
    // a dry CPU of a group whose other CPUs have more than the giver
    let dry = Seat { dry: 1, ..nrt(8) };
    for (migration, from) in [(NRT_NRT, nrt(2)), (RT_NRT, rt(2, 1))] {
        assert!(passes(migration, &from, &dry));
        assert_eq!(moved(migration, &from, &dry, &[100, 100]), 1);
        assert!(!passes(migration, &from, &nrt(8)));
    }
}

/// A real-time task that comes and goes is priced by M. At 3/4, five tasks: 4 to 1, as if idle.
#[test]
fn a_busy_rt_cpu_is_filled_by_load() {
    let busy = |tasks, m| Seat { rt_busy: 1, ..rt(tasks, m) };
    assert_eq!(moved(FILL, &nrt(5), &busy(0, 3), &[100; 4]), 1);
    assert!(passes(FILL, &nrt(5), &busy(0, 4)));
    assert!(!passes(FILL, &nrt(4), &busy(1, 4)));
    // it would wait longer there than here
    assert_eq!(moved(FILL, &nrt(3), &busy(0, 4), &[100; 2]), 0);
    // an endless hog gets nothing, even if its average is still rising
    assert_eq!(moved(FILL, &nrt(13), &busy(0, 65), &[100; 12]), 0);
    assert!(!passes(FILL, &nrt(13), &Seat { rt_held: 1, ..busy(0, 2) }));
}

/// A guest would wait for a task that may run nowhere else.
#[test]
fn an_rt_cpu_with_a_bound_task_receives_nobody() {
    let bound = Seat { rt_bound: 1, ..rt(0, 1) };
    assert!(!passes(FILL, &nrt(5), &bound));
    assert!(!passes(RT_RT, &rt(5, 1), &bound));
    assert!(passes(FILL, &nrt(5), &rt(0, 1)));
    // and gives as any other does
    assert!(passes(RT_NRT, &Seat { rt_bound: 1, ..rt(5, 1) }, &nrt(1)));
}

#[test]
fn a_held_rt_cpu_is_relieved_of_all() {
    let held = Seat { rt_busy: 1, rt_held: 1, queued: 3, ..rt(3, 1) };
    assert!(passes(RT_NRT, &held, &nrt(9)));
    assert_eq!(moved(RT_NRT, &held, &nrt(9), &[100; 3]), 3);
    assert!(prefers_from(&held, Some(&rt(50, 4))));
    assert!(!prefers_from(&rt(50, 4), Some(&held)));
    for migration in [FILL, RETURN, RT_RT] {
        let from = Seat { rt: u8::from(migration == RT_RT), rt1_waiting: 1, ..nrt(9) };
        assert!(!passes(migration, &from, &Seat { weight: 0, ..held }));
    }
}

#[test]
fn rt1_tasks_return_whatever_the_loads_unless_they_would_wait() {
    let from = Seat { rt1_waiting: 1, ..nrt(2) };
    assert!(passes(RETURN, &from, &rt(9, 4)));
    assert!(!passes(RETURN, &nrt(2), &rt(0, 1)), "none is known to wait");
    assert!(!passes(RETURN, &from, &Seat { rt_busy: 1, ..rt(0, 1) }));
    assert!(!passes(RETURN, &from, &Seat { rt1: 1, ..rt(1, 1) }));
    let haul = haul_of(RETURN, &from, &rt(9, 4));
    assert!(steals(RETURN, &Candidate { rt1: 1, ..CALM }, &haul));
    assert!(!steals(RETURN, &CALM, &haul));
    assert!(!steals(RETURN, &Candidate { rt1: 1, calm: 0, ..CALM }, &haul));
}

#[test]
fn from_an_rt_cpu_nrt_tasks_leave_first() {
    let (from, to) = (Seat { rt1: 2, ..rt(4, 4) }, nrt(1));
    let firm = Candidate { rt1: 1, ..CALM };
    let mut haul = haul_of(RT_NRT, &from, &to);
    assert!(steals(RT_NRT, &CALM, &haul));
    assert!(!steals(RT_NRT, &firm, &haul));
    haul.rt1_too = 1;
    assert!(steals(RT_NRT, &firm, &haul));
    // alone of its kind and without a real-time task before it, it is the next to run
    for (rt1, rt_busy, leaves) in [(1, 0, false), (1, 1, true), (2, 0, true)] {
        let from = Seat { rt1, rt_busy, ..from };
        let haul = Haul { rt1_too: 1, ..haul_of(RT_NRT, &from, &to) };
        assert_eq!(steals(RT_NRT, &firm, &haul), leaves, "{rt1} {rt_busy}");
    }
}

/// Every combination: to an RT CPU goes who is calm, outside the kernel, settled, a user's; or who
/// has no other CPU.
#[test]
fn nobody_in_a_section_is_moved_to_an_rt_cpu() {
    for bits in 0..128u32 {
        let bit = |i: u32| (bits >> i & 1) as u8;
        let task = Candidate {
            weight: 1,
            rt1: bit(0),
            calm: bit(1),
            in_section: bit(2),
            kernel: bit(3),
            settled: bit(4),
            allowed: bit(5),
            rt_only: bit(6),
        };
        let safe = task.calm & task.settled & !task.in_section & !task.kernel & 1 == 1;
        for migration in ALL {
            let haul = Haul { free: 1, ..haul_of(migration, &nrt(9), &rt(0, 1)) };
            if steals(migration, &task, &haul) {
                assert!(task.allowed == 1, "{task:?}");
                if [FILL, RETURN, RT_RT].contains(&migration) {
                    assert!(safe || task.rt_only == 1, "{migration} {task:?}");
                }
            } else if task.allowed == 1 && task.rt1 == 0 && safe {
                assert_eq!(migration, RETURN, "{task:?}");
            }
        }
    }
}

#[test]
fn the_best_receiver_is_idle_then_least_loaded_then_near() {
    let near = |s: Seat| Seat { near: 1, ..s };
    let busy = Seat { rt_busy: 1, ..rt(0, 1) };
    for migration in [FILL, RT_RT] {
        assert!(prefers_to(migration, &rt(9, 9), None));
        assert!(prefers_to(migration, &rt(0, 9), Some(&rt(1, 1))));
        assert!(prefers_to(migration, &rt(0, 9), Some(&busy)), "idle now");
        assert!(prefers_to(migration, &rt(1, 1), Some(&near(rt(1, 2)))));
        assert!(prefers_to(migration, &near(rt(1, 2)), Some(&rt(1, 2))));
        assert!(
            !prefers_to(migration, &near(rt(0, 2)), Some(&rt(0, 1))),
            "less real time is better"
        );
        assert!(!prefers_to(migration, &rt(1, 2), Some(&rt(1, 2))), "no better than itself");
    }
    assert!(prefers_to(RETURN, &rt(9, 1), Some(&rt(1, 2))), "RT1+ runs before what is there");
}

#[test]
fn the_best_giver_has_the_greatest_load() {
    assert!(prefers_from(&nrt(1), None));
    assert!(prefers_from(&rt(2, 4), Some(&nrt(7))));
    assert!(!prefers_from(&nrt(7), Some(&rt(2, 4))));
    assert!(prefers_from(&Seat { near: 1, ..nrt(7) }, Some(&nrt(7))));
}

/// One pass over the NRT group `seats[0]` and RT CPUs, all tasks of nice 0: returns how many moved.
fn pass(seats: &mut [Seat]) -> usize {
    let mut sum = 0;
    for migration in [RT_NRT, RT_RT, FILL] {
        let (mut best_from, mut best_to) = (None, None);
        for from in 0..seats.len() {
            for to in 0..seats.len() {
                if from == to || !passes(migration, &seats[from], &seats[to]) {
                    continue;
                }
                if prefers_from(&seats[from], best_from.map(|i: usize| &seats[i])) {
                    best_from = Some(from);
                }
                if prefers_to(migration, &seats[to], best_to.map(|i: usize| &seats[i])) {
                    best_to = Some(to);
                }
            }
        }
        if let (Some(from), Some(to)) = (best_from, best_to) {
            let weights = vec![100; seats[from].queued as usize];
            let n = moved(migration, &seats[from], &seats[to], &weights);
            let resize = |seat: &mut Seat, weight| {
                *seat = Seat { weight, queued: (weight / 100).saturating_sub(1) as u32, ..*seat };
            };
            let (less, more) =
                (seats[from].weight - 100 * n as u64, seats[to].weight + 100 * n as u64);
            resize(&mut seats[from], less);
            resize(&mut seats[to], more);
            sum += n;
        }
    }
    sum
}

/// Annex B from the worst start, all on the NRT CPU, pass by pass until nothing moves.
#[test]
fn annex_b_settles_at_its_formula() {
    for m in [1, 2, 4, 10] {
        let mut seats = [nrt(13), rt(0, m), rt(0, m), rt(0, m)];
        // a real-time task runs at the time of each pass, so none looks idle
        seats[1..].iter_mut().for_each(|s| s.rt_busy = u8::from(m > 1));
        let passes = (0..50).take_while(|_| pass(&mut seats) > 0).count();
        let mean = seats[1..].iter().map(|s| s.weight as f64).sum::<f64>() / 300.0;
        let want = 13.0 / (f64::from(m) + 3.0);
        assert!((mean - want).abs() <= 0.35, "M = {m}: {mean} for {want}");
        assert!(passes < 10, "M = {m}: {passes} passes");
    }
}

/// The greatest load that there can be, and the greatest task: it fits.
#[test]
fn extremes_do_not_overflow() {
    let from = Seat { weight: 10_000_000_000, ..nrt(100) };
    for (from, to) in
        [(from, Seat { rt_busy: 1, ..rt(0, 1) }), (Seat { m: 2080 << 20, ..from }, nrt(0))]
    {
        let haul = haul_of(FILL, &from, &to);
        assert!(haul.free == 0 && haul.left_weight > 1 << 32);
        for left_weight in [haul.left_weight, 1 << 47] {
            let task = Candidate { weight: 1_000_000, ..CALM };
            assert!(steals(FILL, &task, &Haul { left_weight, ..haul }), "{left_weight}");
        }
    }
}

proptest! {
    /// Evening out never makes the worse of both loads worse. It falls with each task, so no task
    /// goes back and forth.
    #[test]
    fn no_haul_makes_the_worst_load_worse(
        migration in prop::sample::select(vec![NRT_NRT, RT_NRT, FILL, RT_RT]),
        weights in (prop::collection::vec(1u32..1_000_000, 1..20), prop::collection::vec(1u32..1_000_000, 0..20)),
        ms in (1024u32..65 << 20, 1024u32..65 << 20),
    ) {
        let is_rt = migration == RT_NRT || migration == RT_RT;
        let to_rt = migration == FILL || migration == RT_RT;
        let sum = |w: &[u32]| w.iter().copied().map(u64::from).sum();
        let mut from = Seat { weight: sum(&weights.0), m: ms.0, rt: is_rt.into(), ..nrt(9) };
        let mut to = Seat { weight: sum(&weights.1), m: ms.1, rt: to_rt.into(), rt_busy: to_rt.into(), ..nrt(9) };
        if passes(migration, &from, &to) {
            let mut haul = haul_of(migration, &from, &to);
            for &weight in &weights.0 {
                let task = Candidate { weight, ..CALM };
                if !haul_is_done(&haul) && steals(migration, &task, &haul) {
                    let worst = seat_load(&from);
                    haul_took(&mut haul, weight);
                    from.weight -= u64::from(weight);
                    to.weight += u64::from(weight);
                    prop_assert!(seat_load(&to) <= worst, "{} {}", seat_load(&to), worst);
                    prop_assert!(seat_load(&from) < worst, "{} {}", seat_load(&from), worst);
                }
            }
        }
    }
}
