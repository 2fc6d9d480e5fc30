// SPDX-License-Identifier: GPL-2.0-only
//! From intervals to trace events, written as they come: a recording of runs is long.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::json;

use super::event::{TraceEvent, Track};
use crate::model::{Begin, COUNTERS, Event, Snapshot, What};
use crate::outlets::whole::Interval;

/// The process of the CPUs: no task can have this id (PID_MAX_LIMIT of the kernel is 2^22).
const CPUS: u64 = (1 << 22) + 1;

/// Tracks after which those of tasks that have ended are forgotten, of an endless recording.
pub const TRACKS: usize = 1 << 18;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Runs.
    pub runs: u64,
    /// Evictions.
    pub evictions: u64,
    /// Moves to another CPU.
    pub moves: u64,
    /// Events that were not kept.
    pub left_out: u64,
}

/// A trace that is being written.
pub struct Trace<W: Write> {
    out: W,
    named: HashSet<Track>,
    /// Where the last slice of a track ended, us.
    ended_us: HashMap<Track, f64>,
    told: Told,
}

/// The track of a CPU.
fn cpu_track(cpu: u64) -> Track {
    Track { pid: CPUS, tid: CPUS + 1 + cpu }
}

impl<W: Write> Trace<W> {
    /// Begins one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(mut out: W, begin: &Begin) -> io::Result<Self> {
        let about = json!({
            "program": begin.program, "kernel": begin.kernel, "arch": begin.arch,
            "preemption": begin.preemption, "rt_cpus": begin.rt_cpus, "nrt_cpus": begin.nrt_cpus,
            "policy": begin.policy,
        });
        writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[")?;
        let cpus = Track { pid: CPUS, tid: CPUS };
        let head = TraceEvent::about(cpus, "process_name", "CPUs");
        serde_json::to_writer(&mut out, &head)?;
        let mut trace =
            Self { out, named: HashSet::new(), ended_us: HashMap::new(), told: Told::default() };
        trace.put(&TraceEvent::about(cpus, "process_sort_index", -1))?;
        Ok(trace)
    }

    /// Adds an interval.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        self.told.left_out += interval.left_out;
        self.forget(interval.snapshot);
        self.counters(interval)?;
        for event in &interval.events {
            self.event(event, interval.snapshot)?;
        }
        Ok(())
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self) -> io::Result<Told> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(self.told)
    }

    /// Forgets tracks that get no more slices. One that does gets its name once more.
    fn forget(&mut self, snapshot: &Snapshot) {
        let lives = |track: &Track| match track.pid {
            CPUS => snapshot.machine.cpus.keys().any(|cpu| cpu_track(*cpu as u64) == *track),
            tgid => snapshot.tasks.get(&track.tid).is_some_and(|task| task.metrics.tgid == tgid),
        };
        if self.named.len() > TRACKS {
            self.named.retain(lives);
        }
        if self.ended_us.len() > TRACKS {
            self.ended_us.retain(|track, _| lives(track));
        }
    }

    /// Tracks that are known.
    #[cfg(test)]
    pub(super) fn tracks(&self) -> usize {
        self.named.len().max(self.ended_us.len())
    }

    fn put(&mut self, event: &TraceEvent) -> io::Result<()> {
        self.out.write_all(b",\n")?;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    /// What the CPUs did, from the interval's begin on.
    fn counters(&mut self, interval: &Interval) -> io::Result<()> {
        let at_us = interval.begin_s() * 1e6;
        let machine = &interval.snapshot.machine;
        for (id, cpu) in &machine.cpus {
            let track = cpu_track(*id as u64);
            if self.named.insert(track) {
                let name = format!("CPU {id} ({})", cpu.kind);
                self.put(&TraceEvent::about(track, "thread_name", name))?;
                self.put(&TraceEvent::about(track, "thread_sort_index", *id))?;
            }
            let shares = [("real-time", cpu.rt_pct), ("ext", cpu.ext_pct)];
            let name = format!("CPU {id} share %");
            self.put(&TraceEvent::counter(CPUS, &name, at_us, &shares))?;
            if cpu.is_rt > 0 {
                let name = format!("CPU {id} evictions/s");
                let rate = [("evictions", cpu.evictions_per_s)];
                self.put(&TraceEvent::counter(CPUS, &name, at_us, &rate))?;
            }
        }
        let rates = [("attempts", machine.attempts_per_s), ("evictions", machine.evictions_per_s)];
        self.put(&TraceEvent::counter(CPUS, "all CPUs, 1/s", at_us, &rates))
    }

    /// The track of a task, which gets its name.
    fn task_track(&mut self, event: &Event, snapshot: &Snapshot) -> io::Result<Track> {
        let tgid = snapshot.tasks.get(&event.pid).map_or(event.pid, |task| task.metrics.tgid);
        let track = Track { pid: tgid, tid: event.pid };
        if self.named.insert(track) {
            self.put(&TraceEvent::about(track, "thread_name", event.comm.as_str()))?;
            let leader = snapshot.tasks.get(&tgid).map(|task| task.metrics.comm.as_str());
            let process = leader.unwrap_or(&event.comm);
            self.put(&TraceEvent::about(track, "process_name", process))?;
        }
        Ok(track)
    }

    /// A slice, cut where the one before on its track ended: clocks of two CPUs, and of the
    /// scheduler and the run queue, differ a little, and slices that cross cannot be drawn.
    fn run(
        &mut self,
        track: Track,
        cat: &'static str,
        name: &str,
        span_us: (f64, f64),
    ) -> io::Result<()> {
        let ended_us = self.ended_us.entry(track).or_insert(f64::NEG_INFINITY);
        let begin_us = span_us.0.max(*ended_us);
        if span_us.1 < begin_us {
            return Ok(());
        }
        *ended_us = span_us.1;
        self.put(&TraceEvent::slice(track, cat, name, begin_us, span_us.1 - begin_us))
    }

    fn event(&mut self, event: &Event, snapshot: &Snapshot) -> io::Result<()> {
        let at_us = event.at_s * 1e6;
        let who = format!("{}/{}", event.comm, event.pid);
        match &event.what {
            What::Run { cpu, run_us, rt } => {
                let cat = if *rt { "real-time" } else { "ext" };
                let span_us = (at_us - run_us, at_us);
                self.told.runs += 1;
                self.run(cpu_track(*cpu), cat, &who, span_us)?;
                let track = self.task_track(event, snapshot)?;
                self.run(track, cat, &format!("on CPU {cpu}"), span_us)
            }
            What::Eviction { cause, from, to, left_us, arrived_us } => {
                self.told.evictions += 1;
                let id = self.told.evictions;
                let name = format!("eviction of {who}: {cause}");
                let entry_us = at_us - arrived_us;
                let (from_track, to_track) = (cpu_track(*from), cpu_track(*to));
                let leaves = TraceEvent::slice(from_track, "eviction", &name, entry_us, *left_us)
                    .with("cause", cause.as_str())
                    .with("from CPU", *from)
                    .with("to CPU", *to)
                    .with("left after us", *left_us)
                    .with("arrived after us", *arrived_us);
                self.put(&leaves)?;
                self.put(&TraceEvent::arrow_begin(from_track, "eviction", entry_us, id))?;
                let arrives = format!("{who} arrives");
                self.put(&TraceEvent::slice(to_track, "eviction", &arrives, at_us, 0.0))?;
                self.put(&TraceEvent::arrow_end(to_track, "eviction", at_us, id))?;
                let track = self.task_track(event, snapshot)?;
                let name = format!("evicted by {cause}");
                self.put(&TraceEvent::instant(track, "eviction", &name, entry_us))
            }
            What::Move { why, from, to, wait_us } => {
                self.told.moves += 1;
                let title = COUNTERS.iter().find(|counter| counter.name == why);
                let why = title.map_or("by the kernel", |counter| counter.title);
                let named = |event: TraceEvent| {
                    event.with("from CPU", *from).with("to CPU", *to).with("waited us", *wait_us)
                };
                let name = format!("{who} came: {why}");
                self.put(&named(TraceEvent::instant(cpu_track(*to), "move", &name, at_us)))?;
                let track = self.task_track(event, snapshot)?;
                let name = format!("to CPU {to}: {why}");
                self.put(&named(TraceEvent::instant(track, "move", &name, at_us)))
            }
            What::Exit => {
                let track = self.task_track(event, snapshot)?;
                self.put(&TraceEvent::instant(track, "exit", "ended", at_us))
            }
            What::Note { text } => self.put(&TraceEvent::note(text, at_us)),
        }
    }
}
