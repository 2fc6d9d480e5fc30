// SPDX-License-Identifier: GPL-2.0-only
//! Which task is of which class: rules, and adoption of real-time tasks. BPF tells what happens
//! ([`super::scheduler::news`]), this decides, BPF does as it is told.

pub mod adoption;
pub mod facts;
mod request;
mod rules;
mod source;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::live::InCharge;
use super::scheduler::news::{Item, Kind};
use super::setup::Setup;
use crate::config::Partition;
use crate::control::Treatment;
use crate::exit::Failure;
use adoption::Adoption;
use facts::{Facts, TaskId};
use rules::Rules;
pub use source::Source;

/// A scheduler in charge that tells news of tasks.
pub trait Informed: InCharge {
    /// Tells news of these kinds from now on, and no others.
    ///
    /// # Errors
    /// When the kernel refuses. Then nothing is told.
    fn want_news(&mut self, kinds: &[Kind]) -> Result<()>;

    /// The news that have come, in their order, and whether some were lost before.
    ///
    /// # Errors
    /// When they cannot be read.
    fn take_news(&mut self) -> Result<(Vec<Item>, bool)>;
}

/// Least time between two lists of all tasks that news ask for.
const LIST_EVERY: Duration = Duration::from_millis(100);

/// What decides about tasks, and what it has to remember.
#[derive(Debug)]
pub struct Classes {
    /// Where the rules are written.
    source: Source,
    rules: Rules,
    adoption: Adoption,
    /// Tasks that the user treats by hand; rules leave them alone.
    by_hand: BTreeMap<TaskId, Treatment>,
    /// News were lost, or a task could not be read, since all tasks were last looked at.
    unseen: bool,
    /// That tasks cannot be read was said already.
    unread: bool,
    /// When the tasks were last listed.
    listed_at: Option<Instant>,
    /// What the scheduler in charge tells.
    heard: Vec<Kind>,
    /// The process that nothing is decided of: the daemon has to get a CPU before those it
    /// schedules.
    own_tgid: i32,
}

impl Classes {
    /// With the rules of `source`, before a scheduler is in charge.
    ///
    /// # Errors
    /// When these are wrong.
    pub fn new(source: Source, adoption: Adoption) -> Result<Self, Failure> {
        let rules = Rules::new(source.entries().map_err(wrong)?);
        Ok(Self {
            source,
            rules,
            adoption,
            by_hand: BTreeMap::new(),
            unseen: false,
            unread: false,
            listed_at: None,
            heard: Vec::new(),
            own_tgid: std::process::id().cast_signed(),
        })
    }

    /// Puts back what a dead predecessor did to tasks, as it is pinned below `pinned`, and has what
    /// is done to tasks from now on remembered there.
    ///
    /// # Errors
    /// See [`Adoption::remember_in`].
    pub fn remember_in(&mut self, pinned: &Path) -> Result<(), Failure> {
        self.adoption.remember_in(pinned)
    }

    /// A scheduler has come into charge, and knows of nothing yet.
    ///
    /// # Errors
    /// When it does not take what it is told.
    pub fn begin(&mut self, setup: &Setup, scheduler: &mut impl Informed) -> Result<()> {
        self.heard.clear();
        self.by_hand.retain(|task, _| !task.has_ended());
        for (task, treatment) in &self.by_hand {
            scheduler.set_class(*task, treatment)?;
        }
        self.settle(self.rules.clone(), setup, scheduler)
    }

    /// There are news.
    pub fn hear(&mut self, setup: &Setup, scheduler: &mut impl Informed) {
        let (items, lost) = scheduler.take_news().unwrap_or_else(|error| {
            log::warn!("news of tasks cannot be read: {error:#}");
            (Vec::new(), true)
        });
        // one look for all that happened to a task meanwhile
        let mut tasks = BTreeMap::<i32, Option<String>>::new();
        self.adoption.hear(&items);
        for item in items {
            if item.all_threads {
                match Facts::threads(item.tgid) {
                    Ok(threads) => tasks.extend(threads.into_iter().map(|pid| (pid, None))),
                    Err(error) => self.miss(&error),
                }
            }
            let comm = tasks.entry(item.pid).or_default();
            if item.kind == Kind::Name {
                *comm = Some(item.comm);
            }
        }
        if lost && !std::mem::replace(&mut self.unseen, true) {
            log::warn!("news of tasks were lost in a storm of them: all tasks are looked at");
        }
        for (pid, comm) in &tasks {
            match Facts::read(*pid) {
                Ok(Some(task)) => {
                    let task = named(task, comm.as_ref());
                    self.look_at(&task, &setup.partition, scheduler);
                }
                Ok(None) => {} // it has ended
                Err(error) => self.miss(&error),
            }
        }
        let named = |task: Facts| {
            let comm = tasks.get(&task.pid).and_then(Option::as_ref);
            named(task, comm)
        };
        self.look_round(Instant::now(), named, &setup.partition, scheduler);
    }

    /// Nothing has happened for a while: what news left to do is done.
    pub fn catch_up(&mut self, setup: &Setup, scheduler: &mut impl InCharge) {
        self.look_round(Instant::now(), |task| task, &setup.partition, scheduler);
    }

    /// A task could not be read, which may live.
    fn miss(&mut self, error: &anyhow::Error) {
        self.unseen = true;
        if !std::mem::replace(&mut self.unread, true) {
            log::warn!(
                "not all tasks can be read, which are treated as before: all tasks are looked at again \
                 until they can: {error:#}"
            );
        }
    }

    /// Looks at all tasks, if news were lost: in a storm of them, or while not all tasks can be
    /// read, once in [`LIST_EVERY`]. `named` corrects what /proc says of a task.
    fn look_round(
        &mut self,
        now: Instant,
        named: impl Fn(Facts) -> Facts,
        partition: &Partition,
        scheduler: &mut impl InCharge,
    ) {
        let rests = |at| now.saturating_duration_since(at) < LIST_EVERY;
        if !self.unseen || self.listed_at.is_some_and(rests) {
            return;
        }
        let (all, read) = Facts::all();
        for task in all.into_iter().map(named) {
            self.look_at(&task, partition, scheduler);
        }
        match read {
            Ok(()) => (self.unseen, self.unread) = (false, false),
            Err(error) => self.miss(&error),
        }
        // by then: the list itself may take long
        self.listed_at = Some(Instant::now());
    }

    /// The RT CPUs are others now.
    pub fn repartitioned(&mut self, setup: &Setup, scheduler: &mut impl InCharge) {
        if !self.heard.is_empty() {
            self.look_at_all(&setup.partition, scheduler);
        }
    }

    /// The user has said how this task, and what it starts, is to be treated, whatever rules say.
    pub fn set_by_hand(&mut self, task: TaskId, treatment: Treatment) {
        self.by_hand.insert(task, treatment);
    }

    /// Tasks that were adopted are what they were again.
    ///
    /// # Errors
    /// See [`Adoption::give_back`].
    pub fn give_back(&self) -> Result<()> {
        self.adoption.give_back()
    }

    /// The end: the same, and nothing is pinned any more.
    ///
    /// # Errors
    /// See [`Adoption::end`].
    pub fn end(&mut self) -> Result<()> {
        self.adoption.end()
    }

    /// These rules are in force from now on, for all tasks.
    ///
    /// # Errors
    /// When the scheduler does not take them. Then those before are in force.
    fn settle(&mut self, rules: Rules, setup: &Setup, scheduler: &mut impl Informed) -> Result<()> {
        let mut wanted = rules.wants();
        wanted.extend(self.adoption.wants().iter().filter(|kind| !rules.wants().contains(kind)));
        let idle = wanted.is_empty() && self.heard.is_empty();
        if wanted != self.heard {
            if let Err(error) = scheduler.want_news(&wanted) {
                let again = scheduler.want_news(&self.heard);
                again.context("going back to the rules before, after new ones failed")?;
                return Err(error);
            }
            self.heard = wanted;
        }
        self.rules = rules;
        // after the above: what happens from then on is told
        if !idle {
            self.look_at_all(&setup.partition, scheduler);
        }
        Ok(())
    }

    fn look_at_all(&mut self, partition: &Partition, scheduler: &mut impl InCharge) {
        self.unseen = true;
        self.listed_at = None;
        self.look_round(Instant::now(), |task| task, partition, scheduler);
        if !self.unseen {
            self.listed_at = None; // no news asked for that one
        }
    }

    /// Decides about one task. What fails is told, and the task treated as before.
    fn look_at(&mut self, task: &Facts, partition: &Partition, scheduler: &mut impl InCharge) {
        if task.kernel || task.tgid == self.own_tgid {
            return;
        }
        let said = self.rules.verdict(&self.adoption.as_it_was(task.clone()));
        let (pid, comm) = (task.pid, task.shown());
        let treatment = &said.treatment;
        let may_adopt = said.may_adopt;
        match self.adoption.consider(task, may_adopt, treatment, partition, scheduler) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => log::warn!("task {pid} ({comm}) is not adopted: {error:#}"),
        }
        match scheduler.set_class(TaskId::of(task), treatment) {
            Ok(Some(before)) if before != *treatment && !before.by_hand => {
                log::debug!("task {pid} ({comm}): rule {:?}, {treatment:?}", said.nr);
            }
            Ok(_) => {}
            Err(error) => log::warn!("task {pid} ({comm}) is treated as before: {error:#}"),
        }
    }
}

/// With the name that the news told: /proc may tell the one before for a moment.
fn named(task: Facts, comm: Option<&String>) -> Facts {
    match comm {
        Some(comm) => Facts { comm: comm.clone(), ..task },
        None => task,
    }
}

/// A mistake in what the user wrote.
fn wrong(text: String) -> Failure {
    Failure::Told { code: 2, text: format!("rules: {text}") }
}

#[cfg(test)]
mod tests;
