// SPDX-License-Identifier: GPL-2.0-only
//! `lollobrigida run` and `lollobrigida compare`.

use super::exit::Failure;
use super::output::{Outlets, Shown};
use super::progress::Progress;
use super::scene::{Prepared, prepare};
use super::{CompareArgs, OutputArgs, RunArgs};
use crate::compare::drive::{Driven, Job, drive};
use crate::compare::order::{Order, sequence};
use crate::compare::under::{self, Places};
use crate::execute::real::Real;
use crate::execute::rights::{Powers, needed};
use crate::execute::run::RunOptions;
use crate::execute::sched_ext::{InCharge, SchedExt};
use crate::execute::{Executor, Under, interrupt, survey};
use crate::result::comparison::compare as figures;
use crate::result::{Run, Warning};
use crate::scene::Cpus;

/// Runs a scene under whichever scheduler is in charge.
///
/// # Errors
/// See [`Failure`].
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let outlets = Outlets::open(&args.output)?;
    let prepared = prepare(&args.scene)?;
    let found = InCharge::scheduler(SchedExt::here().read().as_ref());
    let unders = [Under { title: found.name, command: None }];
    let steps = sequence(Order::Aabb, 1, args.runs, args.warmup, prepared.seed);
    let job = Job { plan: &prepared.plan, unders: &unders, steps: &steps };
    let mut machine = Real::accepting(job.plan, job.unders, RunOptions::default());
    let driven = conduct(&mut machine, job, &prepared, &args.output)?;
    conclude(driven, &unders, outlets, args.runs == 1)
}

/// Runs a scene under several schedulers.
///
/// # Errors
/// See [`Failure`].
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let outlets = Outlets::open(&args.output)?;
    let prepared = prepare(&args.scene)?;
    let turns = &args.turns;
    if turns.unders.len() < 2 {
        return Err(Failure::Usage(format!(
            "compare wants two schedulers or more, and has {}: repeat --under, as in --under \
             default --under scx_artis. For one there is 'lollobrigida run'; the same one twice \
             shows how much of a ratio is noise",
            turns.unders.len()
        )));
    }
    let unders = unders(&turns.unders, prepared.rt_cpus.as_ref())?;
    let steps = sequence(turns.order, unders.len(), turns.runs, turns.warmup, prepared.seed);
    let job = Job { plan: &prepared.plan, unders: &unders, steps: &steps };
    let mut machine = Real::choosing(job.plan, job.unders, RunOptions::default());
    let driven = conduct(&mut machine, job, &prepared, &args.output)?;
    conclude(driven, &unders, outlets, false)
}

/// Reads all `--under`, and tells every mistake in them.
///
/// # Errors
/// [`Failure::Usage`].
pub fn unders(texts: &[String], rt_cpus: Option<&Cpus>) -> Result<Vec<Under>, Failure> {
    let places = Places::of_this_process();
    let (mut unders, mut mistakes) = (Vec::new(), Vec::new());
    for text in texts {
        match under::parse(text, rt_cpus, &places) {
            Ok(under) => unders.push(under),
            Err(error) => mistakes.push(error.to_string()),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::Usage(mistakes.join("\n")));
    }
    under::tell_apart(&mut unders);
    Ok(unders)
}

fn conduct(
    machine: &mut dyn Executor,
    job: Job<'_>,
    prepared: &Prepared,
    output: &OutputArgs,
) -> Result<Driven, Failure> {
    interrupt::install()?;
    let progress = Progress::new(job.steps.len(), output.quiet);
    let mut driven = drive(machine, job, &interrupt::pending, &mut |at, step| {
        progress.step(at, step, &job.unders[step.under]);
    });
    let rights = needed(job.plan, job.unders, Powers::here());
    let known = [prepared.warnings.clone(), survey::lacking(&rights)].concat();
    for run in driven.runs.iter_mut().flatten() {
        run.warnings.splice(0..0, known.iter().cloned());
    }
    Ok(driven)
}

/// Shows what was measured, and tells what went wrong.
fn conclude(
    driven: Driven,
    unders: &[Under],
    outlets: Outlets,
    single: bool,
) -> Result<(), Failure> {
    let Driven { mut runs, put_aside, errors, cut_short } = driven;
    if single && runs[0].is_empty() {
        runs[0].extend(cut_short);
    }
    let mut failures: Vec<Failure> = errors.into_iter().map(Failure::from).collect();
    let cut = runs.iter().flatten().flat_map(|run| &run.tasks).filter(|t| t.cut.is_some()).count();
    if cut > 0 {
        failures.push(Failure::NotGood(format!(
            "{cut} tasks did not finish their work: the table names them, --json says why"
        )));
    }
    failures.extend(put_aside.iter().map(|ejected| Failure::NotGood(ejected.text.clone())));
    failures.extend(show(runs, put_aside, unders, outlets, single).err().map(Failure::from));
    let mut failures = failures.into_iter();
    let Some(first) = failures.next() else { return Ok(()) };
    for also in failures {
        eprintln!("lollobrigida: {also}");
    }
    Err(first)
}

fn show(
    runs: Vec<Vec<Run>>,
    put_aside: Vec<Warning>,
    unders: &[Under],
    outlets: Outlets,
    single: bool,
) -> anyhow::Result<()> {
    let Some(first) = runs.iter().flatten().next() else { return Ok(()) };
    if single {
        return outlets.write(Shown::Run(first));
    }
    let titles = unders.iter().map(|under| under.title.clone()).collect();
    let mut comparison = figures(titles, runs);
    comparison.warnings.splice(0..0, put_aside);
    outlets.write(Shown::Comparison(&comparison))
}
