// SPDX-License-Identifier: GPL-2.0-only
//! The run loop's part of the stream: switches watching on and off as viewers
//! come and go, and brings what BPF writes to the hub.

use std::env::consts::ARCH;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use crossbeam_channel::{Receiver, never, tick};

use super::scheduler::{Scheduler, Watched};
use super::setup::Setup;
use crate::config::{KNOBS, Knob};
use crate::feed::frame::{VERSION, encode, kind};
use crate::feed::{Hub, To, Wanted};
use crate::model::{Begin, Reading};

/// How often the ring buffer is emptied while events are written: nobody wakes the daemon for
/// them.
const POLL: Duration = Duration::from_millis(50);
/// How often every task has a record, so that viewers can forget those that are gone.
const EVERY_TASK: Duration = Duration::from_secs(10);

/// Feeds the hub from one scheduler.
pub struct Watcher {
    hub: Arc<Hub>,
    /// What is being watched; `None`: nobody watches.
    wanted: Option<Wanted>,
    /// Whole frames that are on their way.
    frames: Vec<u8>,
    every_task_at: Instant,
    ticks: Ticks,
}

/// When the run loop is to call.
#[derive(Clone)]
pub struct Ticks {
    /// For [`Watcher::adapt`].
    pub changes: Receiver<()>,
    /// For [`Watcher::end_interval`].
    pub interval: Receiver<Instant>,
    /// For [`Watcher::poll`].
    pub poll: Receiver<Instant>,
}

impl Watcher {
    /// For a scheduler that begins: whoever watched the one before goes on with this one.
    pub fn new(hub: &Arc<Hub>) -> Self {
        hub.begin_anew();
        Self {
            hub: Arc::clone(hub),
            wanted: None,
            frames: Vec::new(),
            every_task_at: Instant::now(),
            ticks: Ticks { changes: hub.changes(), interval: never(), poll: never() },
        }
    }

    /// When to call what.
    pub fn ticks(&self) -> Ticks {
        self.ticks.clone()
    }

    /// Viewers may have come or left. `begin` is what a stream begins with now.
    pub fn adapt(&mut self, scheduler: &mut Scheduler<'_>, begin: &Begin) {
        let adapted = self.try_adapt(scheduler, begin);
        self.or_dismiss(adapted, scheduler);
    }

    /// The partition or the policy has changed: `begin` tells how.
    pub fn tell_change(&mut self, scheduler: &mut Scheduler<'_>, begin: &Begin) {
        let Some(wanted) = self.wanted else { return };
        let told = self.send_records(scheduler).and_then(|()| {
            let mut frames = Vec::new();
            put_begin(&mut frames, scheduler, begin, wanted)?;
            self.hub.send(To::Begun, &frames, false);
            Ok(())
        });
        self.or_dismiss(told, scheduler);
    }

    /// Passes on what has come.
    pub fn poll(&mut self, scheduler: &mut Scheduler<'_>) {
        let sent = self.send_records(scheduler);
        self.or_dismiss(sent, scheduler);
    }

    /// An interval is over, or the whole life of the scheduler.
    pub fn end_interval(&mut self, scheduler: &mut Scheduler<'_>) {
        if self.wanted.is_none() {
            return;
        }
        let every_task = self.every_task_at <= Instant::now();
        let sent = self.gather_interval(scheduler, every_task);
        self.hub.send(To::Begun, &self.frames, true);
        self.frames.clear();
        self.or_dismiss(sent, scheduler);
    }

    fn try_adapt(&mut self, scheduler: &mut Scheduler<'_>, begin: &Begin) -> Result<()> {
        let Some(wanted) = self.hub.wanted() else { return self.stop(scheduler) };
        if self.wanted != Some(wanted) {
            let Wanted { interval, events, runs } = wanted;
            scheduler.watch(Some(Watched { events, runs }))?;
            self.ticks.interval = tick(interval);
            self.ticks.poll = if events || runs { tick(POLL) } else { never() };
            self.wanted = Some(wanted);
        }
        if self.hub.has_new() {
            self.begin_streams(scheduler, begin, wanted)?;
        }
        Ok(())
    }

    /// Whoever is new is told of every task. The others get that, too: the records are written
    /// once, and a task has none again before it has run.
    fn begin_streams(
        &mut self,
        scheduler: &Scheduler<'_>,
        begin: &Begin,
        wanted: Wanted,
    ) -> Result<()> {
        scheduler.drain(&mut self.frames)?;
        let old = self.frames.len();
        let mut frames = Vec::new();
        put_begin(&mut frames, scheduler, begin, wanted)?;
        self.gather_interval(scheduler, true)?;
        frames.extend(&self.frames[old..]);
        // first the others: whoever is new is one of them afterwards
        self.hub.send(To::Begun, &self.frames, true);
        self.hub.send(To::New, &frames, true);
        self.frames.clear();
        Ok(())
    }

    /// Has records written, and puts them and a reading into the frames.
    fn gather_interval(&mut self, scheduler: &Scheduler<'_>, every_task: bool) -> Result<()> {
        scheduler.walk(every_task)?;
        scheduler.drain(&mut self.frames)?;
        let reading = Reading { every_task, ..scheduler.read()? };
        encode(&mut self.frames, kind::READING, reading.now_ns, &reading);
        if every_task {
            self.every_task_at = Instant::now() + EVERY_TASK;
        }
        Ok(())
    }

    fn send_records(&mut self, scheduler: &Scheduler<'_>) -> Result<()> {
        scheduler.drain(&mut self.frames)?;
        if !self.frames.is_empty() {
            self.hub.send(To::Begun, &self.frames, false);
            self.frames.clear();
        }
        Ok(())
    }

    /// Watching is no reason to end a scheduler: if it fails, the viewers have to go.
    fn or_dismiss(&mut self, done: Result<()>, scheduler: &mut Scheduler<'_>) {
        let Err(error) = done else { return };
        log::error!("the scheduler cannot be watched, its viewers are sent away: {error:#}");
        self.hub.dismiss();
        if let Err(error) = self.stop(scheduler) {
            log::error!("and it cannot be told that nobody watches: {error:#}");
        }
    }

    /// Nobody watches any more.
    fn stop(&mut self, scheduler: &mut Scheduler<'_>) -> Result<()> {
        self.wanted = None;
        (self.ticks.interval, self.ticks.poll) = (never(), never());
        scheduler.watch(None)
    }
}

fn put_begin(
    frames: &mut Vec<u8>,
    scheduler: &Scheduler<'_>,
    begin: &Begin,
    wanted: Wanted,
) -> Result<()> {
    let now_ns = scheduler.now_ns()?;
    let begin = Begin {
        now_ns,
        now_unix_ms: unix_ms(),
        interval_s: wanted.interval.as_secs_f64(),
        ..begin.clone()
    };
    encode(frames, kind::BEGIN, now_ns, &begin);
    Ok(())
}

/// The time of day, ms since 1970.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// What any stream of this scheduler begins with, without the times.
pub fn begin(setup: &Setup, scheduler: &Scheduler<'_>, kernel: &str, preemption: String) -> Begin {
    let text = |knob: &&Knob| {
        let text = knob.text((knob.get)(&setup.wanted.values));
        (knob.name(), format!("{text} {}", knob.unit()).trim_end().to_owned())
    };
    Begin {
        version: VERSION.into(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        ops_name: scheduler.ops_name(),
        kernel: kernel.to_owned(),
        arch: ARCH.to_owned(),
        preemption,
        rt_cpus: setup.partition.rt.to_string(),
        nrt_cpus: setup.partition.nrt.to_string(),
        daemon_pid: std::process::id(),
        started_ns: scheduler.started_ns(),
        policy: KNOBS.iter().map(text).collect(),
        ..Begin::default()
    }
}
