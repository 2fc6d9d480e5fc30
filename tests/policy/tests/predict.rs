// SPDX-License-Identifier: GPL-2.0-only
//! Who will enter the kernel soon: the mean interval against floating point, and each rule.

use artis_policy::c::{ARTIS_PREDICT_LEAST as LEAST, ARTIS_PREDICT_THESIS as THESIS};
use artis_policy::replay::rules;
use artis_policy::*;
use proptest::prelude::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// The thesis's EXP: e^(-1/100) in 1/2048.
const PAST: u32 = 2028;
const RULES: [u32; 2] = [LEAST, THESIS];

fn policy(rule: u32) -> Policy {
    Policy {
        predict_c_ns: MS,
        predict_k: 2,
        predict_past: PAST,
        predict_rule: rule,
        ..Policy::default()
    }
}

/// A task that attempted last at 1 s and every 10 ms before, of which it ran a quarter.
fn periodic() -> History {
    History {
        last_ns: 1_000 * MS,
        quiet_run_ns: 0,
        period_ns: (10 * MS) << c::ARTIS_PERIOD_SHIFT,
        period_run_ns: (2_500 * US) << c::ARTIS_PERIOD_SHIFT,
        least_run_ns: 1_400 * US,
    }
}

fn attempt(end_ns: u64, run_ns: u64) -> Run {
    Run { end_ns, run_ns, first_attempt_ns: end_ns, attempts: 1 }
}

fn calm_after(rule: u32, wall_ns: u64, run_ns: u64) -> bool {
    let history = History { quiet_run_ns: run_ns, ..periodic() };
    is_calm(&policy(rule), &history, history.last_ns + wall_ns)
}

#[test]
fn thesis_calm_while_the_next_attempt_is_far_and_when_it_is_overdue() {
    // P = 10 ms, C = 1 ms, K = 2: calm before 9 ms and after 20 ms
    for (wall_us, calm) in
        [(0, true), (8_999, true), (9_000, false), (20_000, false), (20_001, true)]
    {
        assert_eq!(calm_after(THESIS, wall_us * US, 0), calm, "{wall_us} us");
    }
}

/// The thesis prints `K x t_d < t - P`. As printed, no task would be calm by the second test
/// until its clock had gone K times as far as at its last attempt: here, after a second.
#[test]
fn the_second_test_compares_intervals_not_instants() {
    assert!(calm_after(THESIS, 25 * MS, 0));
    let late = History { last_ns: 1_000_000 * MS, ..periodic() };
    assert!(is_calm(&policy(THESIS), &late, late.last_ns + 25 * MS), "whenever the machine booted");
}

#[test]
fn wip_calm_once_k_times_the_time_since_reaches_the_period() {
    // K (t - t_d) >= P: from 5 ms on
    for (wall_us, calm) in [(0, false), (4_999, false), (5_000, true), (1_000_000, true)] {
        let history = periodic();
        let now = history.last_ns + wall_us * US;
        assert_eq!(rules::wip(&policy(THESIS), &history, now), calm, "{wall_us} us");
    }
}

#[test]
fn run_has_the_tests_of_the_thesis_in_own_run_time() {
    // P = 2.5 ms of own run time: calm before 1.5 ms and after 5 ms
    for (run_us, calm) in [(0, true), (1_499, true), (1_500, false), (5_000, false), (5_001, true)]
    {
        let history = History { quiet_run_ns: run_us * US, ..periodic() };
        assert_eq!(rules::run(&policy(THESIS), &history), calm, "{run_us} us");
    }
}

#[test]
fn least_is_calm_before_the_shortest_interval_and_after_a_long_quiet() {
    // the least is 1.4 ms: calm before 0.4 ms, and from C x K = 2 ms on, however long it waited
    for (run_us, calm) in [(0, true), (399, true), (400, false), (1_999, false), (2_000, true)] {
        for wall in [run_us * US, 3_600_000 * MS] {
            assert_eq!(calm_after(LEAST, wall, run_us * US), calm, "{run_us} us");
        }
    }
}

#[test]
fn the_least_interval_falls_at_once_and_rises_slowly() {
    assert_eq!(least_next(0, 5 * MS), 5 * MS);
    assert_eq!(least_next(5 * MS, MS), MS);
    assert_eq!(least_next(0, 0), 1, "known, though it is nothing");
    let mut least = MS;
    for _ in 0..22 {
        least = least_next(least, 100 * MS);
    }
    assert!(least > 19 * MS / 10 && least < 2 * MS, "{least}");
    assert_eq!(least_next(least, 3 * MS), least + least / 32);
}

/// Fifty short intervals and a long pause: a mean says 3 ms, which no interval is near.
#[test]
fn a_burst_is_told_by_its_least_interval() {
    let (mut history, mut now) = (History::default(), 0);
    for i in 0..200 {
        let interval = if i % 50 == 0 { 150 * MS } else { 60 * US };
        now += interval;
        history_note(&mut history, &policy(LEAST), &attempt(now, interval));
    }
    assert!(rules::run(&policy(LEAST), &history) && !is_calm(&policy(LEAST), &history, now));
    assert!(history.least_run_ns < 65 * US, "{}", history.least_run_ns);
    // several attempts of one run count as one interval before the first, and equal ones
    let mut history = periodic();
    let at = 2_000 * MS;
    let run = Run { end_ns: at + 3 * MS, run_ns: 4 * MS, first_attempt_ns: at, attempts: 4 };
    history_note(&mut history, &policy(LEAST), &run);
    assert_eq!(history.least_run_ns, 750 * US);
}

#[test]
fn without_a_known_interval_a_task_has_to_run_for_c_times_k() {
    for (run_us, calm) in [(0, false), (1_999, false), (2_000, true)] {
        let history = History { quiet_run_ns: run_us * US, ..History::default() };
        let now = 1_000_000 * MS;
        for rule in RULES {
            assert_eq!(is_calm(&policy(rule), &history, now), calm, "{rule} {run_us}");
        }
        assert_eq!(rules::wip(&policy(THESIS), &history, now), calm, "{run_us}");
        assert_eq!(rules::run(&policy(THESIS), &history), calm, "{run_us}");
    }
}

/// Clocks of two CPUs may differ: a moment before the last attempt counts as that attempt's.
#[test]
fn a_clock_that_lags_is_no_overflow() {
    let history = periodic();
    assert!(is_calm(&policy(THESIS), &history, history.last_ns - 1));
    assert!(!rules::wip(&policy(THESIS), &history, history.last_ns - 1));
    let mut history = periodic();
    let before = attempt(history.last_ns - US, MS);
    history_note(&mut history, &policy(LEAST), &before);
    assert!(period(history.period_ns) < 10 * MS && period(history.period_ns) > 9 * MS);
}

#[test]
fn a_run_without_an_attempt_is_quiet_time_and_one_with_ends_it() {
    let mut history = periodic();
    let before = history;
    history_note(
        &mut history,
        &policy(LEAST),
        &Run { end_ns: 2_000 * MS, run_ns: MS, ..Run::default() },
    );
    assert_eq!(history, History { quiet_run_ns: MS, ..before });
    let at = 2_010 * MS;
    history_note(
        &mut history,
        &policy(LEAST),
        &Run { end_ns: at + 300 * US, run_ns: MS, first_attempt_ns: at, attempts: 1 },
    );
    assert_eq!((history.last_ns, history.quiet_run_ns), (at, 300 * US));
}

/// With the thesis's weight from 0, P would have come no further than 3 ms after 40 attempts.
#[test]
fn the_first_interval_is_the_mean_at_once() {
    let (mut history, policy) = (History::default(), policy(LEAST));
    history_note(&mut history, &policy, &attempt(100 * MS, 4 * MS));
    assert_eq!((history.period_ns, history.period_run_ns), (0, 0), "one attempt is no interval");
    history_note(&mut history, &policy, &Run { end_ns: 104 * MS, run_ns: MS, ..Run::default() });
    history_note(&mut history, &policy, &attempt(110 * MS, 2 * MS));
    assert_eq!(period(history.period_ns), 10 * MS);
    assert_eq!(period(history.period_run_ns), 3 * MS, "1 ms of quiet, then 2 ms");
}

/// A first run with several attempts has intervals between them, but none before the first.
#[test]
fn several_attempts_in_the_first_run() {
    let mut history = History::default();
    let run = Run { end_ns: 140 * MS, run_ns: 50 * MS, first_attempt_ns: 100 * MS, attempts: 4 };
    history_note(&mut history, &policy(LEAST), &run);
    assert_eq!(history.last_ns, 130 * MS, "equal spaces up to the end");
    assert_eq!(period(history.period_ns), 10 * MS);
    assert_eq!(period(history.period_run_ns), 10 * MS);
    assert_eq!(history.quiet_run_ns, 10 * MS);
}

/// A real-time task ran within the run: the clock went on, the task's own time did not.
#[test]
fn no_more_own_time_than_the_task_had() {
    let mut known = periodic();
    let at = known.last_ns + 10 * MS;
    let run = Run { end_ns: at + 40 * MS, run_ns: 5 * MS, first_attempt_ns: at, attempts: 1 };
    history_note(&mut known, &policy(LEAST), &run);
    assert_eq!((known.last_ns, known.quiet_run_ns), (at, 5 * MS));
    let mut first = History::default();
    let run = Run { run_ns: 16 * MS, attempts: 4, ..run };
    history_note(&mut first, &policy(LEAST), &run);
    assert_eq!((period(first.period_ns), first.quiet_run_ns), (10 * MS, 10 * MS));
    assert_eq!(period(first.period_run_ns), 2 * MS, "what is left of 16 ms for three intervals");
}

#[test]
fn one_second_of_sleep_is_in_the_clock_but_not_in_the_run_time() {
    let mut history = History::default();
    for i in 1..=3 {
        history_note(&mut history, &policy(LEAST), &attempt(i * 1_000 * MS, MS));
    }
    assert_eq!(period(history.period_ns), 1_000 * MS);
    assert_eq!(period(history.period_run_ns), MS);
}

/// A change of pace by ten shows as the average says: 1 - 1/e of it after 1 / (1 - w) attempts.
#[test]
fn the_mean_follows_a_ramp_with_the_thesis_weight() {
    let mut mean = period_next(0, MS, 1, PAST);
    for _ in 0..100 {
        mean = period_next(mean, 10 * MS, 1, PAST);
    }
    let w = f64::from(PAST) / 2048.0;
    let want = 10e6 - 9e6 * w.powi(100);
    assert!((period(mean) as f64 - want).abs() < 1e-5 * want, "{} {want}", period(mean));
}

#[test]
fn extremes_do_not_overflow() {
    let longest = period_next(0, u64::MAX, 1, PAST);
    assert_eq!(longest, c::ARTIS_PERIOD_MAX);
    assert_eq!(period_next(longest, 1 << 56, 1, PAST), longest, "the shift would leave nothing");
    assert_eq!(period_next(longest, u64::MAX, 1, 0), longest);
    assert_eq!(period_next(0, 0, 1, PAST), 1, "known, though it is nothing");
    assert_eq!(period_next(77, MS, 0, PAST), 77);
    let mut policy = policy(THESIS);
    (policy.predict_k, policy.predict_c_ns) = ((1 << 29) - 1, u64::from(u32::MAX));
    let history =
        History { last_ns: 1, period_ns: longest, period_run_ns: longest, ..History::default() };
    for rule in RULES {
        policy.predict_rule = rule;
        is_calm(&policy, &history, u64::MAX);
    }
    assert!(rules::wip(&policy, &history, u64::MAX));
    rules::run(&policy, &history);
    policy.predict_rule = THESIS;
    assert!(!is_calm(&policy, &history, 1 + (17 << 30)), "K x P is not reached within hours");
}

proptest! {
    #[test]
    fn powers_of_the_weight(past in 1024u32..2048, n in 0u32..1024) {
        let want = (f64::from(past) / 2048.0).powi(n as i32);
        let got = past_power(past, n) as f64 / c::ARTIS_PAST_ONE as f64;
        prop_assert!((got - want).abs() < 1e-6, "{} {}", got, want);
    }

    /// What the issue asks: P between 10 us and 10 s is kept within 0.1 %, at any weight.
    #[test]
    fn the_mean_stays_with_the_float(
        past in 1024u32..2048,
        intervals in proptest::collection::vec((4.0f64..10.0, 1u32..40), 1..400),
    ) {
        let (mut fixed, mut float) = (0, 0.0);
        for (exponent, n) in intervals {
            let sum = (10f64.powf(exponent) * f64::from(n)) as u64;
            let mean = sum as f64 / f64::from(n);
            let w = (f64::from(past) / 2048.0).powi(n as i32);
            float = if fixed == 0 { mean } else { float * w + mean * (1.0 - w) };
            fixed = period_next(fixed, sum, n, past);
            prop_assert!((period(fixed) as f64 - float).abs() < 1e-3 * float, "{} {}", fixed, float);
        }
    }

    /// It does not stick where its steps get small.
    #[test]
    fn the_mean_arrives(past in 1024u32..2048, from in 4.0f64..10.0, to in 4.0f64..10.0) {
        let to = 10f64.powf(to) as u64;
        let mut mean = period_next(0, 10f64.powf(from) as u64, 1, past);
        for _ in 0..200 {
            mean = period_next(mean, 1_000 * to, 1_000, past);
        }
        prop_assert!(period(mean).abs_diff(to) <= to / 1_000, "{} {}", period(mean), to);
    }

    /// However the time of a task is cut into runs, its own run time is all there.
    #[test]
    fn run_time_is_neither_lost_nor_doubled(
        runs in proptest::collection::vec((1u64..10_000_000, 0.0f64..1.0, any::<bool>()), 2..60),
    ) {
        let policy = Policy { predict_past: 0, ..policy(LEAST) };
        let (mut now, mut history, mut since) = (MS, History::default(), 0);
        for (run_ns, at, attempts) in runs {
            now += run_ns;
            let after = (run_ns as f64 * at) as u64;
            let run = Run {
                end_ns: now,
                run_ns,
                first_attempt_ns: if attempts { now - after } else { 0 },
                attempts: u32::from(attempts),
            };
            let known = history.last_ns != 0;
            history_note(&mut history, &policy, &run);
            since += run_ns;
            if attempts && known {
                // w = 0: the mean is the last interval
                prop_assert_eq!(period(history.period_run_ns), (since - after).max(period(1)));
                prop_assert_eq!(period(history.period_ns), (since - after).max(period(1)));
            }
            if attempts {
                since = after;
            }
            prop_assert_eq!(history.quiet_run_ns, since);
        }
    }
}
