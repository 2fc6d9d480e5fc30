// SPDX-License-Identifier: GPL-2.0-only
//! Adoption: SCHED_FIFO and SCHED_RR tasks that are not bound to RT CPUs become RT1+ tasks, and what
//! they were again at the end. Those that are not adopted are named, or kept off the RT CPUs
//! (docs/adoption.md).

mod attr;
mod confine;
mod journal;
mod restore;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result};

use super::facts::{Facts, TaskId};
use crate::config::Partition;
use crate::control::{Class, Treatment};
use crate::daemon::live::InCharge;
use crate::daemon::scheduler::news::{Asked, Item, Kind};
use attr::{SCHED_EXT, Was};
use journal::{Change, Journal};
pub use restore::repair;

/// So many tasks are named that may run on RT CPUs and should not; then it is said that there are
/// more.
const NAMED_MAX: usize = 32;
/// So often a task may change its policy while it is adopted, until the next news of it.
const ATTEMPTS: u32 = 4;
/// Answers of calls are kept of so many tasks, which may have ended.
const ASKED_MAX: usize = 1024;

/// What the user wants done with real-time tasks that are not bound to RT CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// They become RT1+ tasks.
    pub adopt: bool,
    /// Those that are not adopted are bound to NRT CPUs.
    pub confine: bool,
    /// Those that may run on RT CPUs even so are named.
    pub name: bool,
}

/// What it does, and what it has done.
#[derive(Debug, Default)]
pub struct Adoption {
    wanted: Wanted,
    journal: Journal,
    /// What calls asked the kernel to make of tasks, since the last look at them.
    asked: HashMap<i32, Asked>,
    /// Of whom a warning was given.
    named: HashSet<TaskId>,
}

/// A task to decide about.
struct Case<'a> {
    task: &'a Facts,
    id: TaskId,
    may_adopt: bool,
    /// What rules say of it.
    treatment: &'a Treatment,
    partition: &'a Partition,
}

impl Case<'_> {
    /// May it run on RT CPUs only?
    fn is_bound_to_rt(&self) -> bool {
        self.task.cpus.and(&self.partition.nrt).is_empty()
    }

    /// How the task is treated while it is adopted: a rule's class comes before its own priority.
    fn adopted(&self, was: Was) -> Treatment {
        let class = match self.treatment.class {
            Class::Nrt => was.class(),
            by_rule @ Class::Rt1 { .. } => by_rule,
        };
        Treatment { class, ..*self.treatment }
    }
}

impl Adoption {
    /// That does this, once it has a file to remember it in.
    pub fn new(wanted: Wanted) -> Self {
        let mut adoption = Self::default();
        adoption.wanted = wanted;
        adoption
    }

    /// Remembers in the file `state` what it changes. What a dead predecessor left is put back
    /// first.
    ///
    /// # Errors
    /// When that cannot be done, or the file not be read.
    pub fn remember_in(&mut self, state: &Path) -> Result<()> {
        match repair(state)? {
            0 => {}
            tasks => log::warn!(
                "a dead predecessor had adopted or confined {tasks} tasks: they are as they were"
            ),
        }
        self.journal = Journal::open(state)?;
        Ok(())
    }

    /// The news that it has to hear.
    pub fn wants(&self) -> &'static [Kind] {
        match self.wanted {
            Wanted { adopt: false, confine: false, name: false } => &[],
            Wanted { adopt: false, confine: false, name: true } => &[Kind::ToRt],
            _ => &[Kind::ForkRt, Kind::ToRt, Kind::Affinity, Kind::Policy],
        }
    }

    /// Hears news, before it is asked to consider the task.
    pub fn hear(&mut self, item: &Item) {
        if let Some(asked) = item.asked {
            self.asked.insert(item.pid, asked);
        }
    }

    /// The task as it would be without adoption: what rules are about.
    pub fn as_it_was(&self, task: Facts) -> Facts {
        let held = match self.journal.held().get(&TaskId::of(&task)) {
            Some(Change::Adopted(was)) => Some(*was),
            // a child, perhaps
            None if task.policy == SCHED_EXT => {
                attr::get(task.pid).ok().flatten().as_ref().and_then(Was::by_code)
            }
            _ => None,
        };
        match held {
            Some(was) => Facts { policy: was.sched(), rt_priority: was.priority, ..task },
            None => task,
        }
    }

    /// Looks at a task that is new, or of which there are news. `may_adopt`: rules have nothing
    /// against it; `treatment` is what they say of it besides. Returns whether it is adopted now
    /// (then its treatment is set already).
    ///
    /// # Errors
    /// When it should be adopted, confined or given back, and could not be. It is as before then.
    pub fn consider(
        &mut self,
        task: &Facts,
        may_adopt: bool,
        treatment: &Treatment,
        partition: &Partition,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        if task.kernel || task.tgid.cast_unsigned() == std::process::id() {
            return Ok(false);
        }
        self.tidy()?;
        let may_adopt = self.wanted.adopt && may_adopt;
        let case = Case { task, id: TaskId::of(task), may_adopt, treatment, partition };
        let asked = self.asked.remove(&task.pid);
        match self.journal.held().get(&case.id).cloned() {
            Some(Change::Adopted(was)) => self.look_again(&case, was, asked, scheduler),
            Some(Change::Confined { from, to, .. }) => self.confined(&case, &from, &to, scheduler),
            None => self.look(&case, scheduler),
        }
        .with_context(|| format!("task {} ({})", task.pid, task.comm))
    }

    /// The end: every task is what it was again.
    ///
    /// # Errors
    /// When one could not be put back, or the file that remembers them cannot be removed. Each
    /// task was tried.
    pub fn end(&mut self) -> Result<()> {
        let tasks = restore::all(&mut self.journal)?;
        if tasks > 0 {
            log::info!("{tasks} adopted or confined tasks are as they were");
        }
        Ok(())
    }

    /// A task that nothing was done to.
    fn look(&mut self, case: &Case<'_>, scheduler: &mut dyn InCharge) -> Result<bool> {
        if self.wanted == Wanted::default()
            || !(case.task.is_realtime() || case.task.policy == SCHED_EXT)
        {
            return Ok(false);
        }
        let Some(attr) = attr::get(case.task.pid)? else { return Ok(false) };
        if let Some(was) = Was::by_code(&attr) {
            // a child of an adopted task
            self.journal.note(case.id, Change::Adopted(was))?;
            return self.look_again(case, was, None, scheduler);
        }
        let Some(was) = Was::now(&attr) else { return Ok(false) };
        if case.is_bound_to_rt() {
            return Ok(false);
        }
        if case.may_adopt {
            return self.adopt(case, was, scheduler);
        }
        self.keep_off(case, was)?;
        Ok(false)
    }

    /// The record first, then the class, then a last look, then the policy: whoever changes the
    /// policy of an RT1+ task after that look is told of, so no change of its own is lost.
    fn adopt(
        &mut self,
        case: &Case<'_>,
        mut was: Was,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        for _ in 0..ATTEMPTS {
            self.journal.note(case.id, Change::Adopted(was))?;
            scheduler.set_class(case.task.pid, &case.adopted(was))?;
            match attr::get(case.task.pid)?.as_ref().and_then(Was::now) {
                Some(now) if now == was => match was.adopt(case.task.pid) {
                    Ok(()) => return Ok(true),
                    Err(gone) if attr::is_gone(&gone) => break,
                    Err(error) => {
                        self.forget(case, scheduler)?;
                        return Err(error).context("taking its real-time policy");
                    }
                },
                Some(now) => was = now,
                None => break,
            }
        }
        self.forget(case, scheduler)?;
        Ok(false)
    }

    /// An adopted task.
    fn look_again(
        &mut self,
        case: &Case<'_>,
        mut was: Was,
        asked: Option<Asked>,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        let tid = case.task.pid;
        let attr = attr::get(tid)?;
        if !attr.is_some_and(|attr| was.is_as_left(&attr)) {
            // it made something else of itself, or is gone
            self.forget(case, scheduler)?;
            return self.look(case, scheduler);
        }
        match asked.map(|asked| was.after(asked)) {
            // its call came just before ours, which undid it
            Some(Err(asked)) => {
                attr::set_fair(tid, asked.policy.unwrap_or(0), asked.nice, asked.reset_on_fork)
                    .context("giving it the policy that it asked for")?;
                self.forget(case, scheduler)?;
                return Ok(false);
            }
            Some(Ok(now)) if now != was => {
                self.journal.note(case.id, Change::Adopted(now))?;
                now.adopt(tid).context("taking its new real-time policy")?;
                was = now;
            }
            Some(Ok(_)) | None => {}
        }
        if case.may_adopt && !case.is_bound_to_rt() {
            scheduler.set_class(tid, &case.adopted(was))?;
            return Ok(true);
        }
        was.give_back(tid).with_context(|| format!("making it {was} again"))?;
        self.forget(case, scheduler)?;
        if !case.is_bound_to_rt() {
            self.keep_off(case, was)?;
        }
        Ok(false)
    }

    /// It is not adopted any more, and treated as rules say.
    fn forget(&mut self, case: &Case<'_>, scheduler: &mut dyn InCharge) -> Result<()> {
        scheduler.set_class(case.task.pid, case.treatment)?;
        self.journal.done(case.id)
    }

    /// Forgets tasks that have ended, now and then: nobody tells of ends.
    fn tidy(&mut self) -> Result<()> {
        if self.asked.len() > ASKED_MAX {
            self.asked.clear();
        }
        if self.journal.is_stale() {
            self.journal.forget_dead(TaskId::lives);
            self.named.retain(|id| id.lives());
            self.journal.rewrite()?;
        }
        Ok(())
    }
}

impl Drop for Adoption {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::error!("{error:#}; scx_artis --restore tries again");
        }
    }
}
