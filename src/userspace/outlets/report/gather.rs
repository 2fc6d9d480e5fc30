// SPDX-License-Identifier: GPL-2.0-only
//! What a report shows of a recording, kept small however long it is: neighbouring spans of
//! time become one as soon as there are more of them than can be drawn.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use crate::model::{Begin, Hist, Lost, Metrics, SLOTS, Snapshot, Task, What};
use crate::outlets::whole::Interval;

/// Spans that are drawn at most; twice as many are kept until they are joined.
pub const SPANS: usize = 400;
/// Tasks that ended and are kept at most; the least busy are dropped.
const ENDED: usize = 2_000;
/// Notes that are kept at most: the first ones.
pub const NOTES: usize = 1_000;
/// Tasks of which a span keeps the wake-ups at most: those with the longest. A few are drawn.
pub const WOKEN: usize = 256;
/// Causes that a span keeps at most: the most frequent. The kernel has some 400 calls.
pub const CAUSES: usize = 512;

/// What one CPU did in a span of time, percent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// In real-time tasks.
    pub rt_pct: f64,
    /// In ext tasks.
    pub ext_pct: f64,
}

/// Times of something that happened several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// By their length.
    pub hist: Hist,
    /// The longest, us; 0: there was none.
    pub max_us: f64,
}

impl Times {
    /// One of `us` microseconds.
    pub fn one(us: f64) -> Self {
        let mut hist = vec![0; SLOTS];
        let slot = (1..SLOTS).take_while(|slot| Hist::from_ns(*slot) as f64 <= us * 1e3).count();
        hist[slot] = 1;
        Self { hist: Hist(hist), max_us: us }
    }

    /// The time that a share of them does not exceed, us. `None`: there are none.
    pub fn quantile_us(&self, share: f64) -> Option<f64> {
        (self.hist.count() > 0).then(|| (self.hist.quantile_ns(share) / 1e3).min(self.max_us))
    }

    /// Adds the others.
    pub fn add(&mut self, other: &Self) {
        if self.hist.0.len() < other.hist.0.len() {
            self.hist.0.resize(other.hist.0.len(), 0);
        }
        for (mine, more) in self.hist.0.iter_mut().zip(&other.hist.0) {
            *mine += more;
        }
        self.max_us = self.max_us.max(other.max_us);
    }
}

/// A span of time.
#[derive(Clone, Debug, Default)]
pub struct Span {
    /// Seconds since the recording began.
    pub begin_s: f64,
    /// See above.
    pub end_s: f64,
    /// By CPU.
    pub shares: BTreeMap<usize, Share>,
    /// Evictions, all of them.
    pub evictions: f64,
    /// Those whose cause is known.
    pub causes: BTreeMap<String, f64>,
    /// Time of tasks that could leave in kernel sections on RT CPUs, us per second.
    pub residence_us_per_s: f64,
    /// From the attempt to running on the NRT CPU, of evictions that were recorded one by one.
    pub arrivals: Times,
    /// From the attempt to leaving the RT CPU, of the same.
    pub departures: Times,
    /// Median and 99th percentile of all evictions' arrivals, us; of joined spans the longer.
    pub arrival_us: Option<(f64, f64)>,
    /// Wake-up latency of hard real-time tasks, by thread id.
    pub wakeups: BTreeMap<u64, Times>,
}

impl Span {
    /// How long it is, seconds.
    pub fn len_s(&self) -> f64 {
        (self.end_s - self.begin_s).max(1e-9)
    }

    /// Both, of which `next` is the later one.
    fn join(mut self, next: Self) -> Self {
        let (mine, its) = (self.len_s(), next.len_s());
        let mean = |a: f64, b: f64| (a * mine + b * its) / (mine + its);
        for (cpu, share) in next.shares {
            let had = self.shares.entry(cpu).or_insert(share);
            had.rt_pct = mean(had.rt_pct, share.rt_pct);
            had.ext_pct = mean(had.ext_pct, share.ext_pct);
        }
        for (cause, n) in next.causes {
            *self.causes.entry(cause).or_default() += n;
        }
        for (pid, times) in &next.wakeups {
            self.wakeups.entry(*pid).or_default().add(times);
        }
        self.evictions += next.evictions;
        self.residence_us_per_s = mean(self.residence_us_per_s, next.residence_us_per_s);
        self.arrivals.add(&next.arrivals);
        self.departures.add(&next.departures);
        let longer = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
        self.arrival_us = match (self.arrival_us, next.arrival_us) {
            (Some(mine), Some(its)) => Some(longer(mine, its)),
            (mine, its) => mine.or(its),
        };
        self.end_s = next.end_s;
        self
    }

    /// Keeps what fits. Returns how many tasks' wake-ups it drops; a cause that is dropped is among
    /// all others.
    fn trim(&mut self) -> u64 {
        keep_greatest(&mut self.causes, CAUSES, |n| *n);
        keep_greatest(&mut self.wakeups, WOKEN, |times| times.max_us)
    }
}

/// Keeps the `max` entries that `of` is greatest of. Returns how many it drops.
fn keep_greatest<K: Ord, V>(map: &mut BTreeMap<K, V>, max: usize, of: impl Fn(&V) -> f64) -> u64 {
    if map.len() <= max {
        return 0;
    }
    let mut all: Vec<_> = take(map).into_iter().collect();
    all.sort_by(|a, b| of(&b.1).total_cmp(&of(&a.1)));
    let dropped = all.split_off(max).len();
    map.extend(all);
    dropped as u64
}

/// A task and what it did while it was recorded.
#[derive(Clone, Debug)]
pub struct Known {
    /// As it was last.
    pub task: Arc<Task>,
    /// Run time in the recording, seconds.
    pub run_s: f64,
    /// Of that, on RT CPUs.
    pub on_rt_s: f64,
    /// It has ended.
    pub ended: bool,
}

/// A recording.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The machine and the policy, at its end.
    pub begin: Arc<Begin>,
    /// The machine's figures at its end.
    pub machine: Metrics,
    /// When it began: seconds since the scheduler did.
    pub from_s: f64,
    /// The time of day then, ms since 1970.
    pub from_unix_ms: u64,
    /// Intervals that were read.
    pub intervals: u64,
    /// In the order of time.
    pub spans: Vec<Span>,
    /// By thread id; of ended ones a few.
    pub tasks: BTreeMap<u64, Known>,
    /// What was noted, with seconds since the recording began.
    pub notes: Vec<(f64, String)>,
    /// Events that were not kept.
    pub events_left_out: u64,
    /// Notes beyond [`NOTES`].
    pub notes_left_out: u64,
    /// Wake-ups of tasks in a span beyond [`WOKEN`].
    pub woken_left_out: u64,
    /// What is missing.
    pub lost: Lost,
    /// Evictions were recorded one by one.
    pub has_events: bool,
}

impl Recorded {
    /// How long it is, seconds.
    pub fn len_s(&self) -> f64 {
        self.spans.last().map_or(0.0, |span| span.end_s)
    }

    /// The hard real-time tasks, the one with the longest wake-up latency first.
    pub fn hard(&self) -> Vec<&Known> {
        let is_hard = |known: &&Known| known.task.metrics.class == "RT0";
        let mut hard: Vec<&Known> = self.tasks.values().filter(is_hard).collect();
        let worst = |known: &Known| known.task.metrics.wait_max_us;
        hard.sort_by(|a, b| worst(b).total_cmp(&worst(a)));
        hard
    }

    /// Adds an interval.
    pub fn add(&mut self, interval: &Interval) {
        let snapshot = interval.snapshot;
        if self.intervals == 0 {
            let begin = &snapshot.begin;
            self.from_s = interval.begin_s();
            let since_ms =
                self.from_s * 1e3 - begin.now_ns.saturating_sub(begin.started_ns) as f64 / 1e6;
            self.from_unix_ms = begin.now_unix_ms.saturating_add_signed(since_ms as i64);
        }
        let mut span = self.span(interval);
        self.woken_left_out += span.trim();
        self.events_left_out += interval.left_out;
        self.intervals += 1;
        self.spans.push(span);
        if self.spans.len() >= 2 * SPANS {
            self.halve();
        }
        self.begin = Arc::clone(&snapshot.begin);
        self.machine = snapshot.machine.clone();
        self.lost = snapshot.lost;
        self.remember(snapshot);
    }

    /// Joins each span with its neighbour.
    fn halve(&mut self) {
        let mut all = take(&mut self.spans).into_iter();
        while let Some(first) = all.next() {
            let mut span = match all.next() {
                Some(second) => first.join(second),
                None => first,
            };
            self.woken_left_out += span.trim();
            self.spans.push(span);
        }
    }

    fn span(&mut self, interval: &Interval) -> Span {
        let snapshot = interval.snapshot;
        let machine = &snapshot.machine;
        let mut span = Span {
            begin_s: interval.begin_s() - self.from_s,
            end_s: machine.uptime_s - self.from_s,
            evictions: machine.evictions_per_s * machine.interval_s,
            residence_us_per_s: machine.residence_us_per_s,
            ..Span::default()
        };
        if machine.evictions_per_s > 0.0 && machine.arrival_p99_us > 0.0 {
            span.arrival_us = Some((machine.arrival_p50_us, machine.arrival_p99_us));
        }
        for (id, cpu) in &machine.cpus {
            span.shares.insert(*id, Share { rt_pct: cpu.rt_pct, ext_pct: cpu.ext_pct });
        }
        for (pid, task) in &snapshot.tasks {
            let before = self.tasks.get(pid).filter(|known| !known.ended).map(|k| &*k.task);
            self.causes(&mut span, task, before);
            if let Some(times) = wakeups(task, before, interval.begin_s()) {
                span.wakeups.insert(*pid, times);
            }
        }
        for event in &interval.events {
            match &event.what {
                What::Eviction { left_us, arrived_us, .. } => {
                    self.has_events = true;
                    span.arrivals.add(&Times::one(*arrived_us));
                    span.departures.add(&Times::one(*left_us));
                }
                What::Note { .. } if self.notes.len() == NOTES => self.notes_left_out += 1,
                What::Note { text } => {
                    self.notes.push((event.at_s - self.from_s, text.clone()));
                }
                _ => {}
            }
        }
        span
    }

    /// Adds the evictions of `task` since `before` by cause. Of the first interval it is not
    /// known what came before.
    fn causes(&self, span: &mut Span, task: &Task, before: Option<&Task>) {
        if self.intervals == 0 {
            return;
        }
        for cause in task.causes.iter().filter(|cause| cause.evictions > 0) {
            let had = before.and_then(|b| b.causes.iter().find(|had| had.cause == cause.cause));
            let fresh = cause.evictions.saturating_sub(had.map_or(0, |had| had.evictions));
            if fresh > 0 {
                *span.causes.entry(cause.cause.clone()).or_default() += fresh as f64;
            }
        }
    }

    fn remember(&mut self, snapshot: &Snapshot) {
        for (pid, known) in &mut self.tasks {
            known.ended |= !snapshot.tasks.contains_key(pid);
        }
        let of_interval = |pct: f64| pct / 100.0 * snapshot.machine.interval_s;
        for (pid, task) in &snapshot.tasks {
            let (run_s, on_rt_s) =
                (of_interval(task.metrics.cpu_pct), of_interval(task.metrics.on_rt_pct));
            match self.tasks.get_mut(pid).filter(|known| !known.ended) {
                Some(known) => {
                    known.task = Arc::clone(task);
                    known.run_s += run_s;
                    known.on_rt_s += on_rt_s;
                }
                None => {
                    let task = Arc::clone(task);
                    self.tasks.insert(*pid, Known { task, run_s, on_rt_s, ended: false });
                }
            }
        }
        let ended = self.tasks.values().filter(|known| known.ended).count();
        if ended > 2 * ENDED {
            let mut busy: Vec<f64> =
                self.tasks.values().filter(|known| known.ended).map(|known| known.run_s).collect();
            busy.sort_by(|a, b| b.total_cmp(a));
            let least = busy[ENDED];
            self.tasks.retain(|_, known| !known.ended || known.run_s > least);
        }
    }
}

/// The wake-ups of a hard real-time task in an interval that began at `begin_s`. `None`: it is
/// none, or there were none, or it is not known what came before.
fn wakeups(task: &Task, before: Option<&Task>, begin_s: f64) -> Option<Times> {
    let metrics = &task.metrics;
    let hist = task.waits.since(&before?.waits);
    if metrics.class != "RT0" || hist.count() == 0 {
        return None;
    }
    // the longest of all times is known, that of an interval to its slot of the histogram only
    let max_us = if metrics.wait_max_at_s >= begin_s {
        metrics.wait_max_us
    } else {
        (hist.quantile_ns(1.0) / 1e3).min(metrics.wait_max_us)
    };
    Some(Times { hist, max_us })
}
