// SPDX-License-Identifier: GPL-2.0-only
//! The board as the runner uses it.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Board, State};
use crate::actor::clock;
use crate::actor::futex::{self, Woken};
use crate::actor::report::Report;

/// Ends the sleep of a task that [`Board::stop`] stops; tasks ignore it otherwise.
pub const STOP_SIGNAL: Signal = Signal::SIGUSR1;

/// A stopped task may enter its sleep just after the signal: so often it comes again.
const STOP_AGAIN_NS: u64 = 10_000_000;

/// How a wait of the runner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// What was waited for is true of every task.
    All,
    /// The time came before.
    Late,
    /// A signal came before (SIGCHLD, if the runner handles it without SA_RESTART): look
    /// for dead tasks and wait again.
    Interrupted,
}

impl Board {
    /// Waits until each task is ready or failed. Sleeps.
    #[must_use]
    pub fn wait_ready(&self, timeout: Duration) -> Wait {
        self.wait(&self.header().readied.0, Some(timeout))
    }

    /// The start signal. Returns its time, CLOCK_MONOTONIC in ns, from which all times of
    /// the reports count.
    pub fn start(&self) -> u64 {
        let header = self.header();
        let now_ns = clock::monotonic_ns();
        header.start_ns.store(now_ns, SeqCst);
        header.start.0.store(1, SeqCst);
        futex::wake(&header.start.0);
        now_ns
    }

    /// Waits until each task is done or failed. Sleeps; is woken by the last task only, so
    /// that the runner disturbs no other. A killed task tells nothing: the runner hears of
    /// it as its parent and says so by [`Board::give_up`].
    #[must_use]
    pub fn wait_done(&self, timeout: Option<Duration>) -> Wait {
        self.wait(&self.header().ended.0, timeout)
    }

    /// Makes the tasks leave off soon: between two chunks of computing, out of a wait for
    /// items, out of a sleep. They end as done, and cut. Go on with [`Board::wait_done`].
    pub fn stop(&self) {
        self.header().stop.0.store(1, SeqCst);
        for i in 0..self.plan.links.len() {
            self.link(i).wake_both();
        }
        self.signal_sleepers();
    }

    /// Lets the tasks write their reports and exit.
    pub fn release(&self) {
        let word = &self.header().release.0;
        word.store(1, SeqCst);
        futex::wake(word);
    }

    /// Enters a task that died without a word as failed, and closes its links so that its
    /// neighbours end. Only for tasks that are dead.
    ///
    /// # Panics
    /// When there is no such task.
    pub fn give_up(&self, i: usize, why: &str) {
        self.slot(i).pid.store(0, SeqCst);
        self.fail(i, Report { failed: Some(why.to_owned()), ..Report::default() });
    }

    /// The process of task `i`, once it is ready.
    ///
    /// # Panics
    /// When there is no such task.
    #[must_use]
    pub fn pid(&self, i: usize) -> Option<Pid> {
        match self.slot(i).pid.load(SeqCst) {
            0 => None,
            pid => Some(Pid::from_raw(pid.cast_signed())),
        }
    }

    /// Waits until a word counts all tasks.
    fn wait(&self, word: &AtomicU32, timeout: Option<Duration>) -> Wait {
        let until_ns =
            timeout.map(|t| clock::monotonic_ns().saturating_add(t.as_nanos().min(1 << 62) as u64));
        loop {
            let seen = word.load(SeqCst);
            if seen as usize >= self.plan.tasks.len() {
                return Wait::All;
            }
            let stopping = self.header().stop.0.load(SeqCst) != 0;
            let again_ns = stopping.then(|| clock::monotonic_ns() + STOP_AGAIN_NS);
            let turn_ns = again_ns.map(|a| a.min(until_ns.unwrap_or(u64::MAX))).or(until_ns);
            match futex::wait(word, seen, turn_ns) {
                Woken::Maybe => {}
                Woken::Signal => return Wait::Interrupted,
                Woken::Late if until_ns.is_some_and(|u| clock::monotonic_ns() >= u) => {
                    return Wait::Late;
                }
                Woken::Late => self.signal_sleepers(),
            }
        }
    }

    fn signal_sleepers(&self) {
        for i in 0..self.plan.tasks.len() {
            if self.state(i) == State::Running
                && let Some(pid) = self.pid(i)
            {
                // one that is gone needs no signal: the runner will hear of it
                let _ = kill(pid, STOP_SIGNAL);
            }
        }
    }
}
