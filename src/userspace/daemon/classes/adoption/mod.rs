// SPDX-License-Identifier: GPL-2.0-only
//! Adoption: SCHED_FIFO and SCHED_RR tasks that are not bound to RT CPUs become RT1+ tasks, and what
//! they were again at the end. Those that are not adopted are named, or kept off the RT CPUs
//! (docs/adoption.md).

mod aim;
mod attr;
mod changes;
mod confine;
pub(crate) mod record;
mod restore;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::facts::{Facts, TaskId};
use crate::config::Partition;
use crate::control::{Class, Treatment};
use crate::daemon::live::InCharge;
use crate::daemon::scheduler::news::{Asked, Item, Kind};
use crate::exit::Failure;
use aim::Aimed;
use attr::{SCHED_EXT, Was};
use changes::Changes;
pub use changes::PINNED;
use record::Change;
use restore::put_all_back;
pub use restore::{Repaired, repair};

/// So many tasks are named that may run on RT CPUs and should not; then it is said that there are
/// more.
const NAMED_MAX: usize = 32;
/// So often a task may change its policy while it is adopted, until the next news of it.
const ATTEMPTS: u32 = 4;

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
    /// What it has changed; `None`: nothing is to be changed, or there is no scheduler yet.
    changes: Option<Changes>,
    /// Where it remembers that, or where there are records of tasks that could not be put back.
    pinned: Option<PathBuf>,
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
    /// That does this, once it can remember it.
    pub fn new(wanted: Wanted) -> Self {
        let mut adoption = Self::default();
        adoption.wanted = wanted;
        adoption
    }

    /// Has the kernel remember what it changes, pinned below the directory `pinned`. What a dead
    /// predecessor left there is put back first. What cannot be is tried again at the end.
    ///
    /// # Errors
    /// When the records there cannot be read. [`Failure::Unfit`]: the kernel cannot remember what
    /// is changed.
    pub fn remember_in(&mut self, pinned: &Path) -> Result<(), Failure> {
        let Repaired { restored, failed } = repair(pinned)?;
        if restored > 0 {
            log::warn!(
                "a dead predecessor had adopted or confined {restored} tasks: they are as they were"
            );
        }
        if failed > 0 {
            log::warn!(
                "{failed} tasks that a dead predecessor had adopted or confined could not be put \
                 back, for the reasons above: that is tried again at the end"
            );
        }
        let changes = self.wanted.adopt || self.wanted.confine;
        self.pinned = (changes || failed > 0).then(|| pinned.to_owned());
        if changes {
            let changes = Changes::new(pinned);
            let unfit = |error| Failure::Unfit(format!("--adopt and --confine: {error:#}"));
            self.changes = Some(changes.map_err(unfit)?);
        }
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

    /// Hears all news, before it is asked to consider the tasks that they are about.
    pub fn hear(&mut self, items: &[Item]) {
        self.asked.clear(); // tasks that had ended before they were considered
        self.asked.extend(items.iter().filter_map(|item| Some((item.pid, item.asked?))));
    }

    /// The task as it would be without adoption: what rules are about.
    pub fn as_it_was(&self, task: Facts) -> Facts {
        if task.is_realtime() {
            return task;
        }
        match self.change_of(TaskId::of(&task)) {
            Ok(Some(Change::Adopted(was))) => {
                Facts { policy: was.sched(), rt_priority: was.priority, ..task }
            }
            Ok(_) => task,
            Err(error) => {
                log::warn!("task {}: {error:#}", task.pid);
                task
            }
        }
    }

    /// What was changed of the task.
    fn change_of(&self, id: TaskId) -> Result<Option<Change>> {
        self.changes.as_ref().map_or(Ok(None), |changes| changes.of(id))
    }

    /// Looks at a task that is new, or of which there are news. `may_adopt`: rules have nothing
    /// against it; `treatment` is what they say of it besides. Returns whether it is adopted now:
    /// then its treatment is set already, else the caller has to set it.
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
        let may_adopt = self.wanted.adopt && may_adopt;
        let case = Case { task, id: TaskId::of(task), may_adopt, treatment, partition };
        let asked = self.asked.remove(&task.pid);
        let considered = match self.change_of(case.id) {
            Ok(Some(Change::Adopted(was))) => self.look_again(&case, was, asked, scheduler),
            Ok(Some(Change::Confined { from, nr_to })) => {
                self.confined(&case, from, nr_to, scheduler)
            }
            Ok(None) => self.grant(&case, asked).and_then(|()| self.look(&case, scheduler)),
            Err(error) => Err(error),
        };
        considered.with_context(|| format!("task {} ({})", task.pid, task.shown()))
    }

    /// Every task is what it was again, and remembered still. To forget them has a worker of the kernel
    /// detach programs, with text_mutex held: beneath hogs, while the scheduler is in charge, for so
    /// long that it cannot be let go of.
    ///
    /// # Errors
    /// When one could not be put back. Each task was tried.
    pub fn give_back(&self) -> Result<()> {
        let Some(pinned) = &self.pinned else { return Ok(()) };
        told(put_all_back(pinned)?)
    }

    /// The end: every task is what it was again, and forgotten.
    ///
    /// # Errors
    /// When one could not be put back, or the records of them cannot be removed. Each task was
    /// tried.
    pub fn end(&mut self) -> Result<()> {
        let Some(pinned) = self.pinned.take() else { return Ok(()) };
        self.changes = None;
        told(repair(&pinned)?)
    }

    /// What is changed next is the task of `case`.
    fn at(&self, case: &Case<'_>) -> Result<Aimed> {
        self.changes.as_ref().context("there is no record of changes")?.at(case.id)
    }

    /// A task that nothing was done to.
    fn look(&mut self, case: &Case<'_>, scheduler: &mut dyn InCharge) -> Result<bool> {
        if self.wanted == Wanted::default() || !case.task.is_realtime() {
            return Ok(false);
        }
        let Some(attr) = attr::get(case.task.pid)? else { return Ok(false) };
        let Some(was) = Was::now(&attr) else { return Ok(false) };
        if case.is_bound_to_rt() {
            return Ok(false);
        }
        if case.may_adopt {
            return self.adopt(case, scheduler);
        }
        self.keep_off(case, was)?;
        Ok(false)
    }

    /// The record first, then the class, then a last look, then the policy: there are news of each
    /// change of an RT1+ task's policy after that look, so none is lost.
    fn adopt(&mut self, case: &Case<'_>, scheduler: &mut dyn InCharge) -> Result<bool> {
        let tid = case.task.pid;
        let changes = self.changes.as_ref().context("there is no record of changes")?;
        for _ in 0..ATTEMPTS {
            let Some(was) = changes.note_adopted(case.id)? else { break };
            scheduler.set_class(case.id, &case.adopted(was))?;
            if attr::get(tid)?.as_ref().and_then(Was::now) != Some(was) {
                continue;
            }
            return match was.adopt(changes.at(case.id)?) {
                Err(gone) if attr::is_gone(&gone) => Ok(false),
                taken => taken.map(|()| true).context("taking its real-time policy"),
            };
        }
        Ok(false)
    }

    /// A task with the record that it was `was`. If it has a real-time policy, it was given back.
    fn look_again(
        &mut self,
        case: &Case<'_>,
        was: Was,
        asked: Option<Asked>,
        scheduler: &mut dyn InCharge,
    ) -> Result<bool> {
        let tid = case.task.pid;
        if attr::get(tid)?.is_none_or(|attr| attr::is_realtime(&attr)) {
            return self.look(case, scheduler);
        }
        // its call may have come just before ours, which undid it
        let was = match asked.map_or(Ok(was), |asked| was.after(asked)) {
            Ok(was) => was,
            Err(_) => {
                self.grant(case, asked)?;
                return Ok(false);
            }
        };
        if case.may_adopt && !case.is_bound_to_rt() {
            scheduler.set_class(case.id, &case.adopted(was))?;
            return Ok(true);
        }
        was.give_back(self.at(case)?).with_context(|| format!("making it {was} again"))?;
        if !case.is_bound_to_rt() {
            self.keep_off(case, was)?;
        }
        Ok(false)
    }

    /// Gives a task the policy without priority that it has asked for, if adoption undid that.
    fn grant(&self, case: &Case<'_>, asked: Option<Asked>) -> Result<()> {
        let Some((asked, policy)) = asked.and_then(|asked| Some((asked, asked.policy?))) else {
            return Ok(());
        };
        let undone = attr::get(case.task.pid)?.is_some_and(|attr| attr::is_adopted_like(&attr));
        if !undone || policy == SCHED_EXT || Was::new(policy, 0, false).is_some() {
            return Ok(());
        }
        attr::set_fair(self.at(case)?, policy, asked.nice, asked.reset_on_fork)
            .context("giving it the policy that it asked for")
    }
}

fn told(repaired: Repaired) -> Result<()> {
    let tasks = repaired.all()?;
    if tasks > 0 {
        log::info!("{tasks} adopted or confined tasks are as they were");
    }
    Ok(())
}

impl Drop for Adoption {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::error!("{error:#}; scx_artis --restore tries again");
        }
    }
}
