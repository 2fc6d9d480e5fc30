// SPDX-License-Identifier: GPL-2.0-only
//! The board as a task uses it.

use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use super::link::{Receiver, Sender};
use super::{Board, REPORT_BYTES, State, layout};
use crate::actor::clock::{Clock, Tsc};
use crate::actor::report::Report;
use crate::actor::{futex, prepare};

impl Board {
    /// The process that made the board.
    pub(in crate::actor) fn runner(&self) -> u32 {
        self.header().runner.load(SeqCst)
    }

    /// Not 0: leave off.
    pub(in crate::actor) fn stop_word(&self) -> &AtomicU32 {
        &self.header().stop.0
    }

    /// The side that posts to a link of the plan.
    pub(in crate::actor) fn sender(&self, link: usize) -> Sender<'_> {
        Sender(self.link(link))
    }

    /// The side that takes from it.
    pub(in crate::actor) fn receiver(&self, link: usize) -> Receiver<'_> {
        Receiver(self.link(link))
    }

    /// A part of the board's file that any task may write to: 64 KiB from that offset.
    pub(in crate::actor) fn scratch(&self) -> (RawFd, i64) {
        (self.fd(), self.layout.scratch as i64)
    }

    /// Maps the buffers of task `i` before they are used.
    pub(in crate::actor) fn bring_in_links(&self, i: usize) {
        let task = &self.plan.tasks[i];
        for link in task.takes.iter().chain(&task.posts) {
            let bytes = layout::link_bytes(&self.plan.links[*link]);
            let begin = self.memory.area(self.layout.links[*link], bytes);
            prepare::populate((begin.expose_provenance(), bytes, libc::MADV_POPULATE_WRITE));
        }
    }

    /// Tells the tasks how to read time.
    pub(super) fn choose(&self, clock: Clock) {
        let header = self.header();
        let tsc = match clock {
            Clock::Vdso => Tsc { zero: 0, zero_ns: 0, ns_per_tick_q32: 0 },
            Clock::Tsc(tsc) => tsc,
        };
        header.tsc_zero.store(tsc.zero, SeqCst);
        header.tsc_zero_ns.store(tsc.zero_ns, SeqCst);
        header.tsc_ns_per_tick_q32.store(tsc.ns_per_tick_q32, SeqCst);
    }

    /// The way to read time that the runner chose for all.
    pub(in crate::actor) fn clock(&self) -> Clock {
        let header = self.header();
        let tsc = Tsc {
            zero: header.tsc_zero.load(SeqCst),
            zero_ns: header.tsc_zero_ns.load(SeqCst),
            ns_per_tick_q32: header.tsc_ns_per_tick_q32.load(SeqCst),
        };
        if tsc.ns_per_tick_q32 == 0 { Clock::Vdso } else { Clock::Tsc(tsc) }
    }

    /// Task `i` is ready: waits for the start signal and returns its time.
    pub(in crate::actor) fn ready(&self, i: usize) -> u64 {
        self.slot(i).pid.store(std::process::id(), SeqCst);
        self.enter(i, State::Ready);
        let header = self.header();
        while header.start.0.load(SeqCst) == 0 {
            futex::wait(&header.start.0, 0, None);
        }
        self.slot(i).state.store(State::Running as u32, SeqCst);
        header.start_ns.load(SeqCst)
    }

    /// Task `i` is done: waits for the release. Returns how many system calls that was.
    pub(in crate::actor) fn done(&self, i: usize) -> u64 {
        let mut calls = self.enter(i, State::Done);
        let word = &self.header().release.0;
        while word.load(SeqCst) == 0 {
            futex::wait(word, 0, None);
            calls += 1;
        }
        calls
    }

    /// Writes the report of task `i`. One that is too long leaves its spans out.
    pub(in crate::actor) fn tell(&self, i: usize, mut report: Report) {
        let text = loop {
            match serde_json::to_vec(&report) {
                Ok(text) if text.len() <= REPORT_BYTES => break text,
                Ok(_) if !report.spans.is_empty() => {
                    report.spans_until_ns = Some(0);
                    report.spans.clear();
                }
                _ => return,
            }
        };
        self.memory.write(self.report_at(i), &text);
        self.slot(i).report_bytes.store(text.len() as u64, SeqCst);
    }

    /// Task `i` cannot go on: its report says why, and its neighbours need not wait.
    pub(in crate::actor) fn fail(&self, i: usize, report: Report) {
        self.tell(i, report);
        self.close_links(i);
        self.enter(i, State::Failed);
    }

    /// Ends the links of task `i`. Returns how many system calls that was.
    pub(in crate::actor) fn close_links(&self, i: usize) -> u64 {
        let task = &self.plan.tasks[i];
        let posts: u64 = task.posts.iter().map(|l| self.sender(*l).close()).sum();
        let takes: u64 = task.takes.iter().map(|l| self.receiver(*l).close()).sum();
        posts + takes
    }

    /// Counts a task's way through its states and wakes the runner at the last one of
    /// either count. Returns how many system calls that was.
    fn enter(&self, i: usize, state: State) -> u64 {
        let before = self.slot(i).state.swap(state as u32, SeqCst);
        let header = self.header();
        let tasks = self.plan.tasks.len() as u32;
        let mut calls = 0;
        let mut count = |word: &AtomicU32| {
            if word.fetch_add(1, SeqCst) + 1 == tasks {
                futex::wake(word);
                calls += 1;
            }
        };
        if before == State::Fresh as u32 {
            count(&header.readied.0);
        }
        if before < State::Done as u32 && state >= State::Done {
            count(&header.ended.0);
        }
        calls
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;
    use crate::plan::{Plan, Scale};

    #[test]
    fn tasks_read_time_as_the_runner_chose() {
        let plan = Plan {
            scene: String::new(),
            why: String::new(),
            good: String::new(),
            scale: Scale { steps_per_us: 1.0, steps_per_loop: 1.0, work: 1.0 },
            limit_us: None,
            rt_cpus: None,
            groups: vec![],
            tasks: vec![],
            links: vec![],
        };
        let board = Board::create(&plan).unwrap();
        for clock in [Clock::Tsc(Tsc { zero: 1, zero_ns: 2, ns_per_tick_q32: 3 }), Clock::Vdso] {
            board.choose(clock);
            assert_eq!(board.clock(), clock);
        }
    }
}
