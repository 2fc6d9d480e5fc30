// SPDX-License-Identifier: GPL-2.0-only
//! Walks through the steps over any [`Executor`]. Whatever happens on the way, a scheduler
//! that was started is stopped, and the machine is restored.

use anyhow::{Context, Error, Result};

use super::order::Step;
use crate::execute::{EJECTED, Executor, Interrupted, Purpose, Under};
use crate::plan::Plan;
use crate::result::{Run, Warning};

/// What to do.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// The schedulers.
    pub unders: &'a [Under],
    /// In this order; the indexes are those of `unders`.
    pub steps: &'a [Step],
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Driven {
    /// By scheduler, in the order in which they were made: the whole measured runs. The
    /// survey's warnings are in each.
    pub runs: Vec<Vec<Run>>,
    /// A measured run that a signal cut: of worth to whoever wanted no other.
    pub cut_short: Option<Run>,
    /// Of runs that were put aside since the scheduler was ejected.
    pub put_aside: Vec<Warning>,
    /// What went wrong, in the order in which it did; empty: all was done.
    pub errors: Vec<Error>,
}

/// Does it. `watch` is told each step before it is done; `interrupted` is asked between
/// any two things.
pub fn drive(
    executor: &mut dyn Executor,
    job: Job<'_>,
    interrupted: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(usize, Step),
) -> Driven {
    let mut driven = Driven { runs: vec![Vec::new(); job.unders.len()], ..Driven::default() };
    let mut machine = Guard { executor, in_charge: None, restored: false };
    let walked = walk(&mut machine, job, interrupted, watch, &mut driven);
    driven.errors.extend(walked.err());
    driven.errors.extend(machine.stop().err());
    driven.errors.extend(machine.restore().err());
    driven
}

fn walk(
    machine: &mut Guard<'_>,
    job: Job<'_>,
    interrupted: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(usize, Step),
    driven: &mut Driven,
) -> Result<()> {
    let go_on = || if interrupted() { Err(Error::from(Interrupted)) } else { Ok(()) };
    go_on()?;
    let survey = machine.executor.survey()?;
    for (at, step) in job.steps.iter().enumerate() {
        let under = &job.unders[step.under];
        go_on()?;
        watch(at, *step);
        machine.put_in_charge(step.under, under)?;
        go_on()?;
        let run = machine.executor.run(job.plan, step.purpose);
        if interrupted() {
            driven.cut_short = run.ok().filter(|_| step.purpose != Purpose::WarmUp);
            return Err(Interrupted.into());
        }
        let run = run.with_context(|| format!("a run under {}", under.title))?;
        if let Some(ejected) = run.warnings.iter().find(|w| w.code == EJECTED) {
            driven.put_aside.push(ejected.clone());
            machine.stop()?; // the next step starts it again
        } else if let Purpose::Measure(_) = step.purpose {
            let warnings = survey.iter().chain(&run.warnings).cloned().collect();
            driven.runs[step.under].push(Run { warnings, ..run });
        }
    }
    Ok(())
}

/// Owes the machine a stop and a restore: also when a panic passes by.
struct Guard<'a> {
    executor: &'a mut dyn Executor,
    in_charge: Option<usize>,
    restored: bool,
}

impl Guard<'_> {
    fn put_in_charge(&mut self, index: usize, under: &Under) -> Result<()> {
        if self.in_charge == Some(index) {
            return Ok(());
        }
        self.stop()?;
        self.executor.start(under).with_context(|| format!("starting {}", under.title))?;
        self.in_charge = Some(index);
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        match self.in_charge.take() {
            Some(_) => self.executor.stop(),
            None => Ok(()),
        }
    }

    fn restore(&mut self) -> Result<()> {
        self.restored = true;
        self.executor.restore()
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.restored {
            return;
        }
        for error in [self.stop().err(), self.restore().err()].into_iter().flatten() {
            eprintln!("lollobrigida: {error:#}");
        }
    }
}
