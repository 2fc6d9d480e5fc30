// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks that may run on RT CPUs, are not bound to them, and are not adopted: they are
//! bound to NRT CPUs if the user wants it, else named.

use std::io;

use anyhow::{Context, Result};
use nix::sched::{CpuSet as Affinity, sched_setaffinity};
use nix::unistd::Pid;

use super::attr::Was;
use super::journal::Change;
use super::{Adoption, Case, NAMED_MAX};
use crate::config::CpuSet;
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
            let (from, list) = (task.cpus.to_string(), to.to_string());
            self.journal.note(case.id, Change::Confined { tgid: task.tgid, from, to: list })?;
            if let Err(error) = bind(task.pid, &to) {
                self.journal.done(case.id)?;
                if error.raw_os_error() != Some(nix::libc::ESRCH) {
                    return Err(error).with_context(|| format!("binding it to CPUs {to}"));
                }
            }
            return Ok(());
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
            task.comm
        );
        Ok(())
    }

    /// A task that was bound to the CPUs `to`, and might run on `from` before.
    pub(super) fn confined(
        &mut self,
        case: &Case<'_>,
        from: &str,
        to: &str,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        let (from, to): (CpuSet, CpuSet) = (from.parse()?, to.parse()?);
        if case.task.cpus != to {
            self.journal.done(case.id)?; // it is its own affair now
            return self.look(case, scheduler);
        }
        let stays = case.task.is_realtime()
            && !case.may_adopt
            && from.and(&case.partition.nrt) == to
            && self.wanted.confine;
        if stays {
            return Ok(false);
        }
        bind(case.task.pid, &from).with_context(|| format!("binding it to CPUs {from} again"))?;
        self.journal.done(case.id)?;
        let task = crate::daemon::classes::facts::Facts { cpus: from, ..case.task.clone() };
        self.look(&Case { task: &task, ..*case }, scheduler)
    }
}

/// Lets the thread run on `cpus` only.
pub(super) fn bind(tid: i32, cpus: &CpuSet) -> io::Result<()> {
    let mut affinity = Affinity::new();
    for cpu in cpus.iter() {
        affinity.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(tid), &affinity)?)
}
