// SPDX-License-Identifier: GPL-2.0-only
//! The runner's sleep: until all tasks are where they should be, the limit, or a signal;
//! who dies meanwhile is told to the board, so that the others go on.

use std::collections::BTreeMap;
use std::io::{PipeReader, pipe};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::children::Children;
use super::poll::poll;
use super::signals::Signals;
use crate::actor::board::{Board, State, Wait};
use crate::actor::monotonic_ns;
use crate::measure::rings::Rings;

/// A stopped task ends after its chunk; one that does not is killed after this.
const STOPPING: Duration = Duration::from_secs(5);
/// A task may enter a sleep just after it was told to stop: it is told again.
const STOP_AGAIN: Duration = Duration::from_millis(20);
/// For the kernel to end the killed.
const KILLING: Duration = Duration::from_secs(5);

/// Sleeps for the runner at the board's futex, and lets its end of a pipe go when the wait
/// is over: so one sleep of the runner serves for this, deaths and signals.
pub struct Waiter(PipeReader);

impl Waiter {
    /// Begins to wait, in a thread that `prepare` has prepared when this returns.
    ///
    /// # Errors
    /// When there is no thread or pipe.
    pub fn begin<P: 'static>(
        board: &Arc<Board>,
        prepare: fn() -> P,
        wait: fn(&Board) -> Wait,
    ) -> Result<Self> {
        let (read, write) = pipe().context("no pipe for the end of the run")?;
        let board = Arc::clone(board);
        let (tell, prepared) = channel();
        let sleep = move || {
            let _prepared = prepare();
            drop(tell);
            while wait(&board) == Wait::Interrupted {}
            drop(write);
        };
        thread::Builder::new().name("waiter".into()).spawn(sleep).context("no thread")?;
        // fails when the thread drops its end
        let _ = prepared.recv() as Result<(), _>;
        Ok(Self(read))
    }
}

/// Why the runner woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woke {
    /// The wait is over.
    Over,
    /// The time came.
    Late,
    /// One that [`Signals`] catches.
    Signal,
}

/// How a task died in the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Death {
    /// In words.
    pub why: String,
    /// CLOCK_MONOTONIC, ns.
    pub at_ns: u64,
}

/// Looks after the tasks.
pub struct Watch<'a> {
    /// They.
    pub children: &'a mut Children,
    /// Their board.
    pub board: &'a Arc<Board>,
    /// Caught.
    pub signals: &'a Signals,
    /// By task.
    pub deaths: BTreeMap<usize, Death>,
}

impl Watch<'_> {
    /// Sleeps until the waiter is done, `until`, or a signal.
    ///
    /// # Errors
    /// When the kernel cannot poll so many files.
    pub fn sleep(
        &mut self,
        waiter: &Waiter,
        mut rings: Option<&mut Rings>,
        until: Option<Instant>,
    ) -> Result<Woke> {
        loop {
            let living = self.children.living();
            let mut fds: Vec<RawFd> = vec![waiter.0.as_raw_fd(), self.signals.fd()];
            fds.extend(living.iter().map(|(_, fd)| fd));
            fds.extend(rings.iter().flat_map(|rings| rings.fds()));
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let ready = poll(&fds, left).context("the runner cannot wait for its tasks")?;
            let (dying, half_full) = ready[2..].split_at(living.len());
            for ((task, _), _) in living.iter().zip(dying).filter(|(_, dying)| **dying) {
                self.bury(*task);
            }
            if half_full.contains(&true) {
                rings.iter_mut().for_each(|rings| rings.drain());
            }
            if ready[1] {
                self.signals.take();
                return Ok(Woke::Signal);
            }
            if ready[0] {
                return Ok(Woke::Over);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(Woke::Late);
            }
        }
    }

    /// Stops the tasks and waits until they have ended; kills those that do not.
    ///
    /// # Errors
    /// When even killed tasks stay.
    pub fn stop(&mut self, waiter: &Waiter, mut rings: Option<&mut Rings>) -> Result<()> {
        let mut kill = Instant::now() + STOPPING;
        let mut killed = false;
        loop {
            self.board.stop();
            let again = Instant::now() + STOP_AGAIN;
            if self.sleep(waiter, rings.as_deref_mut(), Some(again))? == Woke::Over {
                return Ok(());
            }
            if Instant::now() < kill {
                continue;
            }
            if killed {
                bail!("tasks that were killed do not end: the kernel holds them; see dmesg");
            }
            for (task, _) in self.children.living() {
                if self.board.state(task) < State::Done {
                    self.children.kill(task);
                }
            }
            killed = true;
            kill = Instant::now() + KILLING;
        }
    }

    /// Notes a task's death; if it had not told its end, the board is told.
    fn bury(&mut self, task: usize) {
        let Some(why) = self.children.death(task) else { return };
        if self.board.state(task) < State::Done {
            self.board.give_up(task, &why);
        }
        self.deaths.insert(task, Death { why, at_ns: monotonic_ns() });
    }
}
