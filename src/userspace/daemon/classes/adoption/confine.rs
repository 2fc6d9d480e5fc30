// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks that may run on RT CPUs, are not bound to them, and are not adopted: they are
//! bound to NRT CPUs if the user wants it, else named.

use std::io;

use anyhow::{Context, Result};
use nix::sched::{CpuSet as Affinity, sched_setaffinity};
use nix::unistd::Pid;

use super::aim::Aimed;
use super::attr::{Was, is_gone};
use super::{Adoption, Case, NAMED_MAX};
use crate::config::CpuSet;
use crate::daemon::classes::facts::Facts;
use crate::daemon::live::InCharge;

impl Adoption {
    /// A real-time task that is not adopted, and not bound to RT CPUs.
    pub(super) fn keep_off(&mut self, case: &Case<'_>, was: Was) -> Result<()> {
        let task = case.task;
        let on = task.cpus.and(&case.partition.rt);
        if on.is_empty() {
            return Ok(());
        }
        if self.wanted.confine {
            let to = task.cpus.and(&case.partition.nrt);
            let changes = self.changes.as_ref().context("there is no record of changes")?;
            changes.note_confined(case.id, &task.cpus, to.len())?;
            return match bind(changes.at(case.id)?, &to) {
                Err(error) if !is_gone(&error) => {
                    Err(error).with_context(|| format!("binding it to CPUs {to}"))
                }
                _ => Ok(()),
            };
        }
        if !self.wanted.name || self.named.len() > NAMED_MAX || !self.named.insert(case.id) {
            return Ok(());
        }
        if self.named.len() > NAMED_MAX {
            log::warn!("more real-time tasks may run on RT CPUs; they are not named");
            return Ok(());
        }
        log::warn!(
            "{was} task {} ({}) may run on RT CPUs {on} and is not bound to them: it delays those \
             who are. Bind it to RT CPUs (taskset -p), start scx_artis with --adopt to make such \
             tasks RT1+, or with --confine to keep them on NRT CPUs",
            task.pid,
            task.shown()
        );
        Ok(())
    }

    /// A task that was bound to `nr_to` CPUs, and might run on `from` before.
    pub(super) fn confined(
        &mut self,
        case: &Case<'_>,
        from: CpuSet,
        nr_to: usize,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        if case.task.cpus.len() != nr_to {
            return self.look(case, scheduler); // it was given back, or its cpuset is another
        }
        let stays = case.task.is_realtime()
            && !case.may_adopt
            && from.and(&case.partition.nrt) == case.task.cpus
            && self.wanted.confine;
        if stays {
            return Ok(false);
        }
        bind(self.at(case)?, &from).with_context(|| format!("binding it to CPUs {from} again"))?;
        let task = Facts { cpus: from, ..case.task.clone() };
        self.look(&Case { task: &task, ..*case }, scheduler)
    }
}

/// Lets the task run on `cpus` only.
pub(super) fn bind(task: Aimed, cpus: &CpuSet) -> io::Result<()> {
    let mut affinity = Affinity::new();
    for cpu in cpus.iter() {
        affinity.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(task.tid()), &affinity)?)
}
