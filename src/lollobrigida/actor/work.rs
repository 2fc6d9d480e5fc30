// SPDX-License-Identifier: GPL-2.0-only
//! The measured part of a task. From the start signal to its end it makes no system call
//! but the scene's own, each counted, and allocates nothing.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use super::board::{Board, LinkCalls, Receiver, Sender, Turn};
use super::calls::Caller;
use super::clock::{self, Clock};
use super::futex;
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
    pub fn prepare(board: &'b Board, index: usize) -> Self {
        let plan = board.plan();
        let task: &Task = &plan.tasks[index];
        let sleeps = task
            .phases
            .iter()
            .any(|p| matches!(p.rhythm, Rhythm::Sleep { .. } | Rhythm::Periodic { .. }));
        let last = !task.takes.is_empty() && task.posts.is_empty();
        let steps_per_loop = (plan.scale.steps_per_loop.round() as u64).max(1);
        Self {
            board,
            clock: board.clock(),
            phases: task.phases.iter().map(|phase| (*phase, None)).collect(),
            memory: Memory::of_kb(task.memory_kb),
            jitter: Jitter::new(task.seed, task.jitter_pct),
            takes: task.takes.iter().map(|l| board.receiver(*l)).collect(),
            posts: task.posts.iter().map(|l| board.sender(*l)).collect(),
            sampler: Sampler::new(possible_cpus(), plan.scale.steps_per_us),
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
            phase_end_ns: None,
            until_walk: steps_per_loop,
            until_call: u64::MAX,
            x: task.seed,
        }
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

    fn phase(&mut self, i: usize) -> io::Result<()> {
        let phase = self.phases[i].0;
        let begin_ns = self.now_ns;
        self.phase_end_ns =
            phase.duration_us.map(|us| begin_ns.saturating_add(us.saturating_mul(1000)));
        self.until_call = phase.call.map_or(u64::MAX, |c| c.every_steps);
        let mut left = phase.work_steps;
        match phase.rhythm {
            Rhythm::Steady => {
                self.burst(i, left, &mut left)?;
            }
            Rhythm::Sleep { every_steps, sleep_us } => {
                while self.burst(i, every_steps, &mut left)? == Go::On && left > 0 {
                    let sleep_ns = self.jitter.around(sleep_us.saturating_mul(1000));
                    if self.sleep_recorded(self.now_ns.saturating_add(sleep_ns)) == Go::Leave {
                        break;
                    }
                }
            }
            Rhythm::Periodic { period_us, burst_steps, deadline_us } => {
                let periods = Periods { begin_ns, period_ns: period_us * 1000, deadline_us };
                self.periodic(i, periods, burst_steps, &mut left)?;
            }
            Rhythm::Items { burst_steps } => {
                while left > 0
                    && let Some(made_ns) = self.take_round()
                    && self.burst_of(i, burst_steps, &mut left, Some(made_ns))? == Go::On
                {
                }
            }
        }
        Ok(())
    }

    fn periodic(
        &mut self,
        i: usize,
        periods: Periods,
        steps: u64,
        left: &mut u64,
    ) -> io::Result<()> {
        let Periods { mut begin_ns, period_ns, deadline_us } = periods;
        while self.burst(i, steps, left)? == Go::On {
            self.report.periods += 1;
            if self.now_ns > begin_ns.saturating_add(deadline_us.saturating_mul(1000)) {
                self.report.misses += 1;
            }
            if *left == 0 {
                break;
            }
            let over = self.now_ns.saturating_sub(begin_ns).div_ceil(period_ns).max(1);
            self.report.left_out += over - 1;
            self.report.periods += over - 1;
            self.report.misses += over - 1;
            begin_ns = begin_ns.saturating_add(over * period_ns);
            if self.sleep_recorded(begin_ns) == Go::Leave {
                break;
            }
        }
        Ok(())
    }

    fn burst(&mut self, i: usize, steps: u64, left: &mut u64) -> io::Result<Go> {
        self.burst_of(i, steps, left, None)
    }

    /// A burst with its jitter, bounded by the phase's work, and the item that it makes.
    fn burst_of(
        &mut self,
        i: usize,
        steps: u64,
        left: &mut u64,
        made_ns: Option<u64>,
    ) -> io::Result<Go> {
        let steps = if steps == *left { steps } else { self.jitter.around(steps).clamp(1, *left) };
        if self.compute(i, steps)? == Go::Leave {
            return Ok(Go::Leave);
        }
        if *left != u64::MAX {
            *left -= steps;
        }
        if let (Some(made_ns), Some(ages)) = (made_ns, &mut self.report.item_age) {
            ages.record(self.now_ns.saturating_sub(made_ns));
        }
        Ok(self.post(made_ns.unwrap_or(self.now_ns)))
    }

    /// So many steps, in chunks that end with the iteration or at a call.
    fn compute(&mut self, i: usize, steps: u64) -> io::Result<Go> {
        let mut left = steps;
        while left > 0 {
            if self.over() {
                return Ok(Go::Leave);
            }
            let chunk = left.min(self.until_walk).min(self.until_call);
            let from_ns = self.now_ns;
            self.x = kernel::compute(chunk, self.x);
            self.read_clock();
            self.sampler.chunk(from_ns, self.now_ns, clock::cpu(), chunk);
            self.report.steps += chunk;
            left -= chunk;
            self.until_walk -= chunk;
            if self.until_walk == 0 {
                self.until_walk = self.steps_per_loop;
                self.memory.walk();
                self.look();
            }
            if self.until_call != u64::MAX {
                self.until_call -= chunk;
                if self.until_call == 0 {
                    self.call(i)?;
                }
            }
        }
        Ok(Go::On)
    }

    fn call(&mut self, i: usize) -> io::Result<()> {
        let (phase, caller) = &mut self.phases[i];
        if let (Some(call), Some(caller)) = (phase.call, caller) {
            self.until_call = call.every_steps;
            let made = caller.make()?;
            self.report.calls.scene += made.calls;
            self.report.faults += made.faults;
            self.look();
        }
        Ok(())
    }

    /// One item of each producer: the time at which the oldest was made. `None`: no more.
    fn take_round(&mut self) -> Option<u64> {
        let mut made_ns = u64::MAX;
        for from in &mut self.takes {
            match from.take(self.phase_end_ns, &mut self.link_calls) {
                Turn::Item(stamp) => {
                    self.report.items_taken += 1;
                    made_ns = made_ns.min(stamp);
                }
                Turn::Closed | Turn::Left => {
                    // the producer may have ended because the run is stopped
                    self.stopped();
                    return None;
                }
            }
        }
        self.read_clock();
        Some(made_ns)
    }

    /// An item to each consumer that has not ended.
    fn post(&mut self, made_ns: u64) -> Go {
        if self.posts.is_empty() {
            return Go::On;
        }
        for to in &mut self.posts {
            match to.post(made_ns, self.phase_end_ns, &mut self.link_calls) {
                Turn::Item(_) => self.report.items_posted += 1,
                Turn::Closed => {}
                Turn::Left => {
                    self.stopped();
                    return Go::Leave;
                }
            }
        }
        self.read_clock();
        Go::On
    }

    /// Sleeps, not beyond the phase's end, and keeps how late it woke.
    fn sleep_recorded(&mut self, until_ns: u64) -> Go {
        let until_ns = until_ns.min(self.phase_end_ns.unwrap_or(u64::MAX));
        if self.sleep_until(until_ns)
            && let Some(wakeup) = &mut self.report.wakeup
        {
            wakeup.record(self.now_ns.saturating_sub(until_ns));
        }
        if self.over() { Go::Leave } else { Go::On }
    }

    /// Whether it slept to the end.
    fn sleep_until(&mut self, until_ns: u64) -> bool {
        let until = futex::timespec(until_ns);
        loop {
            self.report.calls.sleeps += 1;
            // SAFETY: reads one timespec; with an absolute time nothing is written.
            let done = unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &until,
                    std::ptr::null_mut(),
                )
            };
            if done != libc::EINTR || self.stopped() {
                self.read_clock();
                return done == 0;
            }
        }
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

/// When a phase's periods begin and end.
struct Periods {
    begin_ns: u64,
    period_ns: u64,
    deadline_us: u64,
}

/// One more than the highest CPU number there can be.
fn possible_cpus() -> usize {
    // SAFETY: no memory involved.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    // numbers may have holes: sets of the kernel's usual size cover them
    usize::try_from(count).unwrap_or(0).max(1024)
}
