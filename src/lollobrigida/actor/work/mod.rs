// SPDX-License-Identifier: GPL-2.0-only
//! The measured part of a task. From the start signal to its end it makes no system call
//! but the scene's own, each counted, and allocates nothing.
//!
//! The task's plan is a list of phases, whose `rhythm` cuts their computing into bursts; a
//! `burst` is computed in chunks; between bursts the task may `wait`.

mod burst;
mod rhythm;
mod wait;

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::Result;

use super::board::{Board, LinkCalls, Receiver, Sender};
use super::calls::Caller;
use super::clock::{self, Clock};
use super::histogram::Histogram;
use super::jitter::Jitter;
use super::kernel;
use super::memory::Memory;
use super::report::Report;
use super::sample::Sampler;
use crate::plan::{Phase, Rhythm, STEPS_PER_LOOP, Task};

/// Whether the phase goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Go {
    On,
    /// Its time is over, its items have ended, or the run is stopped.
    Leave,
}

/// A task at work.
pub(super) struct Work<'b> {
    board: &'b Board,
    clock: Clock,
    /// With the calls of each.
    phases: Vec<(Phase, Option<Caller>)>,
    memory: Memory,
    jitter: Jitter,
    takes: Vec<Receiver<'b>>,
    posts: Vec<Sender<'b>>,
    sampler: Sampler,
    start_us: u64,
    steps_per_loop: u64,
    report: Report,
    link_calls: LinkCalls,
    /// The signal's time.
    start_ns: u64,
    /// The clock as it was read last.
    now_ns: u64,
    /// The end of the last burst, before its item was posted.
    burst_end_ns: u64,
    /// The current phase ends then.
    phase_end_ns: Option<u64>,
    /// Steps to the end of the iteration.
    until_walk: u64,
    /// Steps to the next call.
    until_call: u64,
    /// The kernel's state.
    x: u64,
}

impl<'b> Work<'b> {
    /// Allocates everything.
    pub fn prepare(board: &'b Board, index: usize) -> Result<Self> {
        let plan = board.plan();
        let task: &Task = &plan.tasks[index];
        let sleeps = task
            .phases
            .iter()
            .any(|p| matches!(p.rhythm, Rhythm::Sleep { .. } | Rhythm::Periodic { .. }));
        let last = !task.takes.is_empty() && task.posts.is_empty();
        let steps_per_loop = (plan.scale.steps_per_loop.round() as u64).max(1);
        Ok(Self {
            board,
            clock: board.clock(),
            phases: task.phases.iter().map(|phase| (*phase, None)).collect(),
            memory: Memory::of_kb(task.memory_kb)?,
            jitter: Jitter::new(task.seed, task.jitter_pct),
            takes: task.takes.iter().map(|l| board.receiver(*l)).collect(),
            posts: task.posts.iter().map(|l| board.sender(*l)).collect(),
            sampler: Sampler::new(possible_cpus()),
            start_us: task.start_us,
            steps_per_loop,
            report: Report {
                wakeup: sleeps.then(Histogram::new),
                item_age: last.then(Histogram::new),
                ..Report::default()
            },
            link_calls: LinkCalls::default(),
            start_ns: 0,
            now_ns: 0,
            burst_end_ns: 0,
            phase_end_ns: None,
            until_walk: steps_per_loop,
            until_call: u64::MAX,
            x: task.seed,
        })
    }

    /// Opens what the calls need, when memory is locked, and does once what the measured
    /// part does often, to have its code and data at hand.
    pub fn rehearse(&mut self) -> io::Result<()> {
        for (phase, caller) in &mut self.phases {
            if let Some(call) = phase.call {
                let opened = Caller::prepare(call.kind, self.board.scratch())?;
                caller.insert(opened).make()?;
            }
        }
        self.x = kernel::compute(self.steps_per_loop.min(STEPS_PER_LOOP), self.x);
        self.memory.walk();
        self.read_clock();
        std::hint::black_box(clock::cpu());
        Ok(())
    }

    /// The measured part: all phases, from the signal on.
    pub fn run(&mut self, start_ns: u64) -> io::Result<()> {
        self.start_ns = start_ns;
        self.read_clock();
        if self.start_us > 0 {
            self.sleep_until(start_ns.saturating_add(self.start_us.saturating_mul(1000)));
        }
        self.report.begun_ns = self.now_ns.saturating_sub(start_ns);
        let mut done = Ok(());
        for i in 0..self.phases.len() {
            if self.stopped() {
                break;
            }
            done = self.phase(i);
            if done.is_err() {
                break;
            }
        }
        self.read_clock();
        self.report.ended_ns = self.now_ns.saturating_sub(start_ns);
        done
    }

    /// What was counted.
    pub fn into_report(mut self) -> Report {
        self.report.calls.waits = self.link_calls.waits;
        self.report.calls.wakes = self.link_calls.wakes;
        self.sampler.tell(self.start_ns, &mut self.report);
        self.report
    }

    fn read_clock(&mut self) {
        self.now_ns = self.clock.now_ns();
    }

    /// After something that was not steps.
    fn look(&mut self) {
        self.read_clock();
        self.sampler.until(self.now_ns, clock::cpu());
    }

    /// The phase is to be left: it is stopped, or its time is over.
    fn over(&mut self) -> bool {
        self.stopped() || self.phase_end_ns.is_some_and(|end_ns| self.now_ns >= end_ns)
    }

    fn stopped(&mut self) -> bool {
        let stopped = self.board.stop_word().load(Relaxed) != 0;
        self.report.cut |= stopped;
        stopped
    }
}

/// One more than the highest CPU number there can be.
fn possible_cpus() -> usize {
    // SAFETY: no memory involved.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    // numbers may have holes: sets of the kernel's usual size cover them
    usize::try_from(count).unwrap_or(0).max(1024)
}
