// SPDX-License-Identifier: GPL-2.0-only
//! The machine itself.

use anyhow::{Context, Result};

use super::rights::{Powers, needed};
use super::run::{self, RunOptions};
use super::sched_ext::SchedExt;
use super::schedulers::{Patience, Schedulers};
use super::{EJECTED, Executor, Purpose, Under, Unfit, interrupt, survey};
use crate::plan::Plan;
use crate::result::{Run, Scheduler, Warning};

/// Does it all.
pub struct Real<'a> {
    plan: &'a Plan,
    unders: &'a [Under],
    /// Of `lollobrigida run`: whoever is in charge is welcome.
    whoever: bool,
    options: RunOptions,
    schedulers: Schedulers,
    in_charge: Option<Scheduler>,
}

impl<'a> Real<'a> {
    /// For a comparison: schedulers are ours to choose.
    #[must_use]
    pub fn choosing(plan: &'a Plan, unders: &'a [Under], options: RunOptions) -> Self {
        let schedulers = Schedulers::new(SchedExt::here(), Patience::default());
        Self { plan, unders, whoever: false, options, schedulers, in_charge: None }
    }

    /// Takes the scheduler that is in charge.
    #[must_use]
    pub fn accepting(plan: &'a Plan, unders: &'a [Under], options: RunOptions) -> Self {
        Self { whoever: true, ..Self::choosing(plan, unders, options) }
    }
}

impl Executor for Real<'_> {
    fn survey(&mut self) -> Result<Vec<Warning>> {
        let rights = needed(self.plan, self.unders, Powers::here());
        let refused: Vec<String> = rights
            .iter()
            .filter(|right| right.must)
            .filter_map(|right| Some(format!("{}: {}", right.what, right.lacking.as_ref()?)))
            .collect();
        if !refused.is_empty() {
            return Err(Unfit(refused.join("\n")).into());
        }
        if !self.whoever {
            let programs = self.unders.iter().any(|under| under.command.is_some());
            self.schedulers.ensure_ours_to_choose(programs)?;
        }
        let mut warnings = survey::survey();
        if self.whoever {
            warnings.extend(survey::other_scheduler(&SchedExt::here()));
        }
        Ok(warnings)
    }

    fn start(&mut self, under: &Under) -> Result<Scheduler> {
        let scheduler = match self.whoever {
            true => self.schedulers.accept(),
            false => self.schedulers.start(under)?,
        };
        self.in_charge = Some(scheduler.clone());
        Ok(scheduler)
    }

    fn run(&mut self, plan: &Plan, _purpose: Purpose) -> Result<Run> {
        let scheduler = self.in_charge.clone().context("no scheduler was put in charge")?;
        let mut run = run::run(plan, scheduler, &self.options)?;
        if let Some(how) = self.schedulers.lost()?
            && !interrupt::pending()
        {
            run.warnings.push(Warning::new(
                EJECTED,
                format!(
                    "{} did not stay in charge during a run, which is not counted: {how}",
                    run.scheduler.name
                ),
            ));
        }
        Ok(run)
    }

    fn stop(&mut self) -> Result<()> {
        self.in_charge = None;
        self.schedulers.stop()
    }

    fn restore(&mut self) -> Result<()> {
        self.stop()
    }
}
