// SPDX-License-Identifier: GPL-2.0-only
//! Adoption: SCHED_FIFO and SCHED_RR tasks that are not bound to RT CPUs become RT1+ tasks, and what
//! they were again at the end.

use anyhow::Result;

use super::facts::Facts;
use crate::config::Partition;
use crate::control::Treatment;
use crate::daemon::live::InCharge;
use crate::daemon::scheduler::news::Kind;

/// What it does, and what it has done.
#[derive(Debug, Default)]
pub struct Adoption {}

impl Adoption {
    /// The news that it has to hear.
    pub fn wants(&self) -> &'static [Kind] {
        &[]
    }

    /// Looks at a task that is new, or of which there are news. `may_adopt`: rules have nothing
    /// against it; `treatment` is what they say of it besides. Returns whether it is adopted now
    /// (then its treatment is set already).
    ///
    /// # Errors
    /// When it should be adopted, confined or given back, and could not be. It is as before then.
    pub fn consider(
        &mut self,
        _task: &Facts,
        _may_adopt: bool,
        _treatment: &Treatment,
        _partition: &Partition,
        _scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        Ok(false)
    }

    /// The end: every task is what it was again.
    ///
    /// # Errors
    /// When the file that remembers them cannot be removed. Each task was tried.
    pub fn end(&mut self) -> Result<()> {
        Ok(())
    }
}
