// SPDX-License-Identifier: GPL-2.0-only
//! An executor that does nothing and says what would be done.

use std::io::Write;

use anyhow::Result;

use crate::execute::{Executor, Purpose, Under};
use crate::plan::Plan;
use crate::result::{Run, Scheduler, Warning};

/// Writes a line for each thing that would be done.
pub struct Rehearsal<'a> {
    out: &'a mut dyn Write,
    line: usize,
    runs: u32,
    /// A program is in charge, as far as this play goes.
    started: bool,
}

impl<'a> Rehearsal<'a> {
    /// `runs` are the measured runs under each scheduler.
    pub fn new(out: &'a mut dyn Write, runs: u32) -> Self {
        Self { out, line: 0, runs, started: false }
    }

    fn say(&mut self, what: &str) -> Result<()> {
        self.line += 1;
        Ok(writeln!(self.out, "{:4}  {what}", self.line)?)
    }
}

impl Executor for Rehearsal<'_> {
    fn survey(&mut self) -> Result<Vec<Warning>> {
        self.say("look at the machine")?;
        Ok(Vec::new())
    }

    fn start(&mut self, under: &Under) -> Result<Scheduler> {
        self.started = under.command.is_some();
        match &under.command {
            Some(command) => self.say(&format!("start {}", shell_words::join(command)))?,
            None => self.say(&format!("{}: nothing to start", under.title))?,
        }
        Ok(Scheduler { name: under.title.clone(), ops: None })
    }

    fn run(&mut self, plan: &Plan, purpose: Purpose) -> Result<Run> {
        match purpose {
            Purpose::WarmUp => self.say("  warm-up run, not measured")?,
            Purpose::Measure(run) => self.say(&format!("  run {} of {}", run + 1, self.runs))?,
        }
        Ok(Run::empty(plan))
    }

    fn stop(&mut self) -> Result<()> {
        match std::mem::take(&mut self.started) {
            true => self.say("stop it, and wait for the kernel's own scheduler"),
            false => Ok(()),
        }
    }

    fn restore(&mut self) -> Result<()> {
        self.say("leave the machine as it was found")
    }
}
