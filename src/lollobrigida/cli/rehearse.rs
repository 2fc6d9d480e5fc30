// SPDX-License-Identifier: GPL-2.0-only
//! `lollobrigida rehearse`: what would be run, without running it.

use std::fmt::Write as _;

use super::RehearseArgs;
use super::exit::Failure;
use super::measure::unders;
use super::output;
use super::scene::{Prepared, prepare};
use crate::compare::describe;
use crate::compare::drive::{Job, drive};
use crate::compare::order::{Step, sequence};
use crate::compare::rehearse::Rehearsal;
use crate::execute::rights::{Powers, Right, needed};
use crate::execute::{DEFAULT, Under, survey};
use crate::outlets::table::{self, Style};
use crate::outlets::units::ns;
use crate::result::Warning;

/// Says all of it.
///
/// # Errors
/// See [`Failure`]; lacking rights are none.
pub fn rehearse(args: &RehearseArgs) -> Result<(), Failure> {
    let prepared = prepare(&args.scene)?;
    let turns = &args.turns;
    let texts = match turns.unders.as_slice() {
        [] => &[DEFAULT.to_owned()],
        named => named,
    };
    let unders = unders(texts, prepared.rt_cpus.as_ref())?;
    let steps = sequence(turns.order, unders.len(), turns.runs, turns.warmup, prepared.seed);
    let job = Job { plan: &prepared.plan, unders: &unders, steps: &steps };

    let mut order = Vec::new();
    let played = drive(&mut Rehearsal::new(&mut order, turns.runs), job, &|| false, &mut |_, _| {});
    if let Some(error) = played.errors.into_iter().next() {
        return Err(error.into());
    }
    let text = head(&prepared, &steps)
        + "\norder\n"
        + &String::from_utf8_lossy(&order)
        + "\nrights\n"
        + &rights(&prepared, &unders)
        + &notes(&[prepared.warnings, survey::survey()].concat());
    output::to_stdout(text.as_bytes())
}

fn head(prepared: &Prepared, steps: &[Step]) -> String {
    let Prepared { plan, expectation, .. } = prepared;
    let mut text = format!("rehearsal of {}: nothing is run\n", plan.scene);
    for (title, words) in [("why", &plan.why), ("good", &plan.good)] {
        if !words.is_empty() {
            text += &listed(&format!("{title}: {words}"));
        }
    }
    let _ = writeln!(text, "\n{} tasks", plan.tasks.len());
    for line in describe::groups(plan) {
        text += &listed(&line);
    }
    let time = |us: f64| ns((us * 1e3) as u64);
    let limited = if expectation.limited { ", by the limit" } else { "" };
    let _ = writeln!(
        text,
        "\nexpected: {}{limited} a run, {} for {} runs with warm-ups, on an idle machine; \
         starting\nschedulers comes on top",
        time(expectation.duration_us),
        time(expectation.duration_us * steps.len() as f64),
        steps.len()
    );
    text
}

fn rights(prepared: &Prepared, unders: &[Under]) -> String {
    let rights = needed(&prepared.plan, unders, Powers::here());
    if rights.is_empty() {
        return "- none that not everyone has\n".into();
    }
    let line = |right: Right| match (&right.lacking, right.must) {
        (None, _) => format!("{}: here", right.what),
        (Some(why), true) => format!("{}: LACKING, nothing would be run: {why}", right.what),
        (Some(why), false) => format!("{}: LACKING, the rest would run: {why}", right.what),
    };
    rights.into_iter().map(|right| listed(&line(right))).collect()
}

fn notes(warnings: &[Warning]) -> String {
    if warnings.is_empty() {
        return String::new();
    }
    let line = |w: &Warning| listed(&format!("{}: {}", w.code, w.text));
    format!("\nwarnings\n{}", warnings.iter().map(line).collect::<String>())
}

/// As wide as the terminal.
fn listed(text: &str) -> String {
    table::item(text, Style::of_stdout(false).width)
}
