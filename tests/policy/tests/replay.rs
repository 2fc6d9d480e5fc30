// SPDX-License-Identifier: GPL-2.0-only
//! The replay of traces: what it counts, and what it has found about the rules.

use artis_policy::Policy;
use artis_policy::replay::judge::{Verdict, judge};
use artis_policy::replay::rules::Name;
use artis_policy::replay::synthetic::{Habit, live, mix};
use artis_policy::replay::trace::{Event, read};

const MS: u64 = 1_000_000;
const HORIZON_NS: u64 = MS / 2;

fn policy(c_ns: u64, k: u32) -> Policy {
    Policy { predict_c_ns: c_ns, predict_k: k, predict_past: 2028, ..Policy::default() }
}

fn verdict(events: &[Event], name: Name, k: u32) -> Verdict {
    judge(events, name, &policy(MS, k), HORIZON_NS)
}

/// One task that runs all the time: run time and clock are the same, in us.
fn trace(text: &str) -> Vec<Event> {
    let line = |line: &str| {
        let (us, what) = line.split_once(' ').expect("a time and an event");
        format!("1,{us}000,{us}000,{what}\n")
    };
    read(text.lines().map(line).collect::<String>().as_bytes()).expect("a trace")
}

#[test]
fn a_trace_is_read_as_it_is_written() {
    let events = mix(1, 7, 100 * MS);
    let text: String = events.iter().map(|event| format!("{event}\n")).collect();
    assert_eq!(read(format!("# a comment\n\n{text}").as_bytes()).expect("a trace"), events);
    for line in ["1,2,3", "1,2,3,attempt,5", "1,2,3,fell", "x,2,3,run"] {
        let error = read(format!("1,2,3,run\n{line}\n").as_bytes()).expect_err(line).to_string();
        assert!(error.starts_with("line 2:"), "{error}");
    }
}

#[test]
fn moves_wasted_ones_and_missed_time_are_counted() {
    // without prediction it goes at 1000 and is evicted after 300 us; goes at 2000, stays for 3 ms
    let events = trace(
        "0 place\n0 attempt\n1000 run\n1000 place\n1300 attempt\n2000 run\n2000 place\n5000 run\n\
         5000 attempt\n5000 place\n",
    );
    let want = Verdict {
        moves: 4,
        // at 0, at once, and at 1000
        wasted: 2,
        wasted_horizon: 2,
        // to 800 us, and 1300 to 4500; after the last attempt nothing has run
        calm_ns: 4_000_000,
        // until 800, and from 1300 to 2000
        missed_ns: 1_500_000,
    };
    assert_eq!(verdict(&events, Name::Off, 2), want);
    // never calm: quiet for C x K = 4 ms at no decision
    let never = verdict(&events, Name::Quiet, 4);
    assert_eq!((never.moves, never.missed_ns, never.calm_ns), (0, 4_000_000, 4_000_000));
}

#[test]
fn a_task_that_is_calm_no_more_leaves_by_itself() {
    // period 10 ms: far at 0, due at 9.5 ms, so that the attempt at 10 ms meets it on an NRT CPU
    let mut text = String::new();
    for i in 1..21 {
        let us = 10_000 * i;
        text += &format!("{us} attempt\n{us} run\n{us} place\n{0} run\n{0} place\n", us + 9_500);
    }
    let v = verdict(&trace(&text), Name::Run, 2);
    // but for the first time, when no interval is known yet
    assert!(v.moves >= 18 && v.wasted <= 1, "{v:?}");
}

/// By the clock, a task that waits in a queue looks calm sooner or later.
#[test]
fn wall_time_calls_waiting_tasks_calm() {
    let events = live(1, Habit::Short, 5, 5_000 * MS);
    for (wall, run) in [(Name::Thesis, Name::Run), (Name::Wip, Name::Run)] {
        let (wall, run) = (verdict(&events, wall, 4), verdict(&events, run, 4));
        assert!(wall.wasted > 10 * run.wasted.max(1), "{wall:?} {run:?}");
    }
}

/// The mean is what a burst is not: its long gaps make the short intervals look far apart.
#[test]
fn a_mean_is_misled_by_bursts_and_the_least_interval_is_not() {
    let events = live(1, Habit::Burst, 5, 20_000 * MS);
    let (mean, least) = (verdict(&events, Name::Run, 8), verdict(&events, Name::Least, 8));
    assert!(mean.wasted_pct() > 20.0, "{mean:?}");
    assert!(least.wasted_pct() < 2.0 && least.missed_pct() < mean.missed_pct() + 5.0, "{least:?}");
}

/// A third of the wasted moves or less, for hardly more missed calm, on any seed.
#[test]
fn the_least_interval_beats_the_mean_on_the_mix() {
    for seed in [1, 100, 2000] {
        let events = mix(2, seed, 10_000 * MS);
        let (mean, least) = (verdict(&events, Name::Run, 2), verdict(&events, Name::Least, 8));
        assert!(3.0 * least.wasted_pct() < mean.wasted_pct(), "{seed}: {least:?} {mean:?}");
        assert!(least.missed_pct() < mean.missed_pct() + 1.5, "{seed}: {least:?} {mean:?}");
    }
}
