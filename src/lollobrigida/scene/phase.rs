// SPDX-License-Identifier: GPL-2.0-only
//! From keys to a phase: which rhythm they make together, and what contradicts.

use super::fields::Fields;
use super::mistake::Found;
use super::{Amount, Call, CallKind, Phase, Rhythm};

/// Keys that make a rhythm of sleeps, and those that make one of bursts.
const SLEEPS: [&str; 3] = ["sloop", "sloop_us", "sleep_us"];
const BURSTS: [&str; 3] = ["burst", "burst_us", "duty_pct"];

/// Builds a phase. What it returns beside a new mistake is of no use but for finding more.
pub(super) fn build(fields: &Fields, follows: bool, found: &mut Vec<Found>) -> Phase {
    // Refused values stand for some: whoever gave one did not forget it.
    let given = |keys: &[&str]| !fields.those_of(keys).is_empty();
    let work = amount(fields, "loop", "compute_us", found)
        .or_else(|| given(&["loop", "compute_us"]).then_some(Amount::Loops(1.0)));
    let duration_ms = fields.whole("duration_ms").or_else(|| given(&["duration_ms"]).then_some(1));
    let rhythm = if fields.those_of(&SLEEPS).is_empty() {
        bursts(fields, follows, found)
    } else {
        sleeps(fields, found)
    };
    Phase { work, duration_ms, rhythm, call: call(fields, found) }
}

fn sleeps(fields: &Fields, found: &mut Vec<Found>) -> Rhythm {
    let sleep = fields.those_of(&SLEEPS)[0];
    let others = ["burst", "burst_us", "duty_pct", "period_us", "burst_deadline_us"];
    for other in fields.those_of(&others) {
        found.push(
            Found::new(
                fields.key_span(other),
                format!("`{other}` beside `{sleep}`"),
                "expected either sleeps or bursts: a phase has one rhythm",
            )
            .key(other)
            .also(fields.key_span(sleep), "makes a rhythm of sleeps"),
        );
    }
    if fields.those_of(&["sloop", "sloop_us"]).is_empty() {
        let todo = "expected `sloop` or `sloop_us` with it: the work between two sleeps";
        fields.refuse(&["sleep_us"], "alone makes no sleep", todo, found);
    } else if !fields.has("sleep_us") {
        let todo = "expected `sleep_us` with it: the length of each sleep";
        fields.refuse(&["sloop", "sloop_us"], "alone makes no sleep", todo, found);
    }
    let every = amount(fields, "sloop", "sloop_us", found).unwrap_or(Amount::Loops(1.0));
    Rhythm::Sleep { every, sleep_us: fields.whole("sleep_us").unwrap_or_default() }
}

fn bursts(fields: &Fields, follows: bool, found: &mut Vec<Found>) -> Rhythm {
    let has_burst = !fields.those_of(&BURSTS).is_empty();
    if fields.has("period_us") {
        return periodic(fields, found);
    }
    let todo = "expected `period_us` with it";
    fields.refuse(&["duty_pct"], "is a share of no period", todo, found);
    fields.refuse(&["burst_deadline_us"], "counts from the begin of no period", todo, found);
    if !has_burst {
        return Rhythm::Steady;
    }
    if !follows && !fields.has("duty_pct") {
        let todo = "expected `period_us` in the phase, or `follows` in the group";
        fields.refuse(&["burst", "burst_us"], "begins by no clock and by no items", todo, found);
    }
    let burst = amount(fields, "burst", "burst_us", found).unwrap_or(Amount::Loops(1.0));
    Rhythm::Items { burst }
}

fn periodic(fields: &Fields, found: &mut Vec<Found>) -> Rhythm {
    fields.only_one(&BURSTS, found);
    if fields.those_of(&BURSTS).is_empty() {
        let todo = "expected `burst`, `burst_us` or `duty_pct` with it: the work of a period";
        fields.refuse(&["period_us"], "alone makes no burst", todo, found);
    }
    let period_us: u64 = fields.whole("period_us").unwrap_or(u64::MAX);
    let deadline_us: u64 = fields.whole("burst_deadline_us").unwrap_or(period_us);
    if deadline_us > period_us {
        found.push(
            Found::new(
                fields.value_span("burst_deadline_us"),
                format!("`burst_deadline_us` is {deadline_us}"),
                format!("expected no more than the period of {period_us} µs"),
            )
            .key("burst_deadline_us")
            .also(fields.value_span("period_us"), "the period"),
        );
    }
    let (key, burst) = match fields.number("duty_pct") {
        Some(pct) => ("duty_pct", Amount::Us(period_us as f64 * pct / 100.0)),
        None => match fields.number("burst") {
            Some(loops) => ("burst", Amount::Loops(loops)),
            None => ("burst_us", Amount::Us(fields.number("burst_us").unwrap_or(1.0))),
        },
    };
    if let Amount::Us(us) = burst
        && (us > deadline_us as f64 || us < 0.1)
    {
        found.push(
            Found::new(
                fields.value_span(key),
                format!("`{key}` makes bursts of {us} µs"),
                format!("expected 0.1 to {deadline_us} µs: no burst could meet its deadline"),
            )
            .key(key)
            .also(fields.value_span("period_us"), "the period"),
        );
    }
    Rhythm::Periodic { period_us, burst, deadline_us }
}

fn call(fields: &Fields, found: &mut Vec<Found>) -> Option<Call> {
    if fields.those_of(&["iloop", "iloop_us"]).is_empty() {
        let todo = "expected `iloop` or `iloop_us` with it: the work between two calls";
        fields.refuse(&["call"], "alone is never made", todo, found);
        return None;
    }
    let every = amount(fields, "iloop", "iloop_us", found)?;
    Some(Call { kind: fields.call().unwrap_or(CallKind::Sysinfo), every })
}

/// An amount given by one of two keys.
fn amount(fields: &Fields, loops: &str, us: &str, found: &mut Vec<Found>) -> Option<Amount> {
    fields.only_one(&[loops, us], found);
    let of_loops = fields.number(loops).map(Amount::Loops);
    of_loops.or_else(|| fields.number(us).map(Amount::Us))
}
