// SPDX-License-Identifier: GPL-2.0-only
//! The model: takes the frames of a stream, and has at the end of each interval
//! what an outlet may show. What it keeps is bounded by the tasks that live, and by [`TASKS_MAX`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::figures::{self, Totals, at_s};
use super::{Begin, EVENTS, Event, Lost, Metrics, Reading, Snapshot, happened};
use crate::abi::bindings::artis_task_record;
use crate::feed::{Frame, FrameError, Record};

/// Events of one interval that are kept: some 50 MB.
const EVENTS_MAX: usize = 1 << 18;
/// Tasks that are kept at most, some 1 KB each: what claims to be a stream may go on for ever.
const TASKS_MAX: usize = 1 << 18;
/// Walks over all tasks that a task may be missing from when records were lost.
const MISSED_MAX: u32 = 3;
/// A task that began in an interval has run for so many intervals at most: clocks differ.
const AS_NEW: f64 = 1.1;
/// An interval may be so much shorter than wanted.
const SLACK: f64 = 0.9;

/// What is known of the machine at the end of each interval. See [`Model::take`].
#[derive(Debug, Default)]
pub struct Model {
    /// The least time between two ends of an interval, ns.
    interval_ns: f64,
    snapshot: Snapshot,
    /// The reading at the end of the interval before; `None`: there was none yet.
    last: Option<Reading>,
    tasks: HashMap<u32, Known>,
    /// Tasks that had their last record, and whether they were met since the last walk over
    /// all tasks all the same: that meets zombies, too.
    gone: HashMap<(u32, u64), bool>,
    /// What was lost before this stream began, and up to the reading before.
    lost_before: Lost,
    lost_then: Lost,
    /// Records in the present interval of tasks beyond [`TASKS_MAX`].
    left_out: u64,
    /// Events of the present interval, the last ones.
    fresh: VecDeque<Event>,
    /// Those before them, beyond [`EVENTS_MAX`].
    dropped: u64,
}

/// One task.
#[derive(Debug)]
struct Known {
    record: Box<artis_task_record>,
    /// Totals at the end of the interval before.
    before: Totals,
    /// It was met in this interval for the first time.
    new: bool,
    /// It had a record in this interval.
    told: bool,
    /// It had a record since the reading before, which may have ended no interval.
    heard: bool,
    /// Walks over all tasks since its last record.
    missed: u32,
}

impl Model {
    /// A model whose intervals are about as long as `interval` or longer, however often the
    /// stream has a reading; 0: each reading ends one.
    pub fn new(interval: Duration) -> Self {
        Self { interval_ns: interval.as_nanos() as f64 * SLACK, ..Self::default() }
    }

    /// What there was at the end of the last interval.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Takes the next frame of the stream. Returns whether it ends an interval: then the
    /// snapshot is a new one. The first reading of a stream ends none, since nothing is known
    /// of the time before.
    ///
    /// # Errors
    /// When the frame cannot be understood.
    pub fn take(&mut self, frame: &Frame<'_>) -> Result<bool, FrameError> {
        let begin = &self.snapshot.begin;
        match frame.record()? {
            Record::Task(record) => self.task(record),
            Record::Eviction(record) => self.tell(happened::eviction(&record, begin)),
            Record::Move(record) => self.tell(happened::moved(&record, begin)),
            Record::Run(record) => self.tell(happened::ran(&record, begin)),
            Record::Begin(begin) => self.begin(*begin),
            Record::Reading(reading) => return Ok(self.reading(*reading)),
            Record::Lost(lost) => self.snapshot.lost.feed = lost.feed,
            Record::Unknown => {}
        }
        Ok(false)
    }

    /// Something has happened. One frame may tell of many things.
    fn tell(&mut self, event: Event) {
        if self.fresh.len() == EVENTS_MAX {
            self.fresh.pop_front();
            self.dropped += 1;
        }
        self.fresh.push_back(event);
    }

    fn begin(&mut self, begin: Begin) {
        let before = Arc::clone(&self.snapshot.begin);
        if before.started_ns != begin.started_ns || before.daemon_pid != begin.daemon_pid {
            let feed = self.snapshot.lost.feed;
            *self = Self { interval_ns: self.interval_ns, ..Self::default() };
            (self.snapshot.lost.feed, self.lost_then.feed) = (feed, feed);
        } else {
            let at_s = at_s(&begin, begin.now_ns);
            for text in changes(&before, &begin) {
                self.tell(happened::note(at_s, text));
            }
        }
        self.snapshot.begin = Arc::new(begin);
    }

    fn task(&mut self, record: Box<artis_task_record>) {
        let (pid, start_ns) = (record.pid, record.start_ns);
        if record.exited != 0 {
            self.tell(happened::exited(&record, &self.snapshot.begin));
            if self.gone.len() < TASKS_MAX {
                self.gone.insert((pid, start_ns), true);
            }
            // another may have its number already
            if self.tasks.get(&pid).is_some_and(|known| known.record.start_ns == start_ns) {
                self.forget(pid);
            }
        } else if let Some(met) = self.gone.get_mut(&(pid, start_ns)) {
            *met = true;
        } else {
            let is_full = self.tasks.len() >= TASKS_MAX;
            match self.tasks.get_mut(&pid) {
                Some(known) if known.record.start_ns == start_ns => {
                    known.record = record;
                    (known.told, known.heard, known.missed) = (true, true, 0);
                }
                None if is_full => self.left_out += 1,
                _ => {
                    self.forget(pid);
                    let before = Totals::default(); // it began in this interval, or see below
                    let known =
                        Known { record, before, new: true, told: true, heard: true, missed: 0 };
                    self.tasks.insert(pid, known);
                }
            }
        }
    }

    fn forget(&mut self, pid: u32) {
        self.tasks.remove(&pid);
        self.snapshot.tasks.remove(&pid.into());
    }

    /// Has something been lost since the last interval's end, as far as that is known?
    fn is_incomplete(&self) -> bool {
        self.snapshot.lost != self.lost_then
    }

    /// Returns whether the reading ends an interval.
    fn reading(&mut self, now: Reading) -> bool {
        let (ring, over_budget) = now.lost();
        if self.last.is_none() {
            self.lost_before = Lost { ring, over_budget, feed: 0 };
        }
        let lost = &mut self.snapshot.lost;
        lost.ring = ring.saturating_sub(self.lost_before.ring);
        lost.over_budget = over_budget.saturating_sub(self.lost_before.over_budget);
        if now.every_task {
            self.forget_unheard();
        }
        for known in self.tasks.values_mut() {
            known.heard = false;
        }
        let Some(last) = &self.last else {
            for known in self.tasks.values_mut() {
                (known.before, known.new) = (Totals::of(&known.record), false);
            }
            self.lost_then = self.snapshot.lost;
            self.last = Some(now);
            return false;
        };
        if (now.now_ns.saturating_sub(last.now_ns) as f64) < self.interval_ns {
            return false;
        }
        self.snapshot.machine = Metrics::between_on(&self.snapshot.begin.arch, Some(last), &now);
        self.snapshot.cpu_times = now.cpus.iter().map(|cpu| (cpu.id, cpu.into())).collect();
        self.last = Some(now);
        self.end_interval();
        true
    }

    /// Forgets who had no record in a walk over all tasks. Where records were lost, who had
    /// none in some.
    fn forget_unheard(&mut self) {
        let missed_max = if self.is_incomplete() { MISSED_MAX } else { 1 };
        let mut vanished = Vec::new();
        for (pid, known) in self.tasks.iter_mut().filter(|(_, known)| !known.heard) {
            known.missed += 1;
            if known.missed >= missed_max {
                vanished.push(*pid);
            }
        }
        for pid in vanished {
            self.forget(pid);
        }
        self.gone.retain(|_, met| std::mem::take(met));
    }

    fn end_interval(&mut self) {
        let Snapshot { begin, machine, tasks, .. } = &mut self.snapshot;
        for (pid, known) in &mut self.tasks {
            let task = Arc::make_mut(tasks.entry((*pid).into()).or_default());
            let ran_s = known.record.exec_ns as f64 / 1e9;
            if std::mem::take(&mut known.new) && ran_s > machine.interval_s * AS_NEW {
                // it is older: the records that would have told of it were lost
                known.before = Totals::of(&known.record);
            }
            if known.told {
                figures::update(task, &known.record, &known.before, machine.interval_s, begin);
                known.before = Totals::of(&known.record);
                known.told = false;
            } else {
                figures::idle(task);
            }
        }
        let (lost, then) = (self.snapshot.lost, self.lost_then);
        for (now, before, what) in [
            (lost.ring, then.ring, "records found no room in the ring buffer (--ring-kb)"),
            (lost.over_budget, then.over_budget, "events were over the budget (record-budget)"),
            (lost.feed, then.feed, "records did not reach this viewer: it was too slow"),
            (std::mem::take(&mut self.left_out), 0, "records are of more tasks than are shown"),
        ] {
            if now > before {
                let text = format!("{} {what}", now - before);
                let at_s = self.snapshot.machine.uptime_s;
                self.tell(happened::note(at_s, text));
            }
        }
        self.lost_then = lost;
        let fresh = self.fresh.len();
        let events = &mut self.snapshot.events;
        events.append(&mut self.fresh);
        // all that are kept of this interval
        let excess = events.len().saturating_sub(EVENTS.max(fresh));
        events.drain(..excess);
        self.snapshot.nr_events += fresh as u64 + std::mem::take(&mut self.dropped);
    }
}

/// What has changed from one BEGIN to the next of the same scheduler.
fn changes(before: &Begin, now: &Begin) -> Vec<String> {
    let mut texts = Vec::new();
    if before.rt_cpus != now.rt_cpus {
        texts.push(format!("RT CPUs are {} (were {})", now.rt_cpus, before.rt_cpus));
    }
    for (name, value) in &now.policy {
        match before.policy.get(name) {
            Some(was) if was != value => texts.push(format!("{name} is {value} (was {was})")),
            _ => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests;
