// SPDX-License-Identifier: GPL-2.0-only
//! The view in the daemon's own process: one viewer of its hub like any other, in threads of
//! its own, so that the run loop never waits for a terminal.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use rustix::process::setpriority_process;

use super::event::Event;
use super::pump::{self, Pump};
use super::run::{self, EndSignals, Pace};
use super::store::Wish;
use super::terminal;
use crate::feed::{Hub, Source, Wanted};

/// So long a terminal may take to let the view end. One that takes no output (Ctrl-S, a connection
/// that is gone) would hold the daemon for ever.
const PATIENCE: Duration = Duration::from_secs(1);

/// The view, until it is dropped: then the terminal is given back.
#[derive(Debug)]
pub struct Inside {
    tell: Sender<Event>,
    left: Receiver<io::Result<()>>,
}

impl Inside {
    /// Takes the terminal and shows what `hub` brings. Signals are the caller's, and neither Ctrl-Z
    /// nor SIGTSTP stops the process: tasks would no longer be adopted, nor requests answered.
    ///
    /// # Errors
    /// When too many watch, or there can be no thread.
    pub fn start(hub: &Arc<Hub>) -> Result<Self> {
        // evictions and moves one by one are for those who ask for them: they cost
        let wanted = Wanted::default();
        let wish = Wish { theme: terminal::theme(), events: wanted.events, ..Wish::default() };
        let source = Source::inside(hub, wanted).ok_or_else(|| anyhow!("too many watch"))?;
        let (tell, told) = bounded(pump::WAITING);
        let (leave, left) = bounded(1);
        let pump = Pump { source, tell: tell.clone(), pace: None, count: None };
        // it ends with the hub
        spawn("stream", move || pump.run())?;
        spawn("view", move || {
            let shown = run::run(wish, &told, &Pace::new(1.0), EndSignals::Others);
            let _ = leave.send(shown); // nobody waits for it: the daemon ends
        })?;
        Ok(Self { tell, left })
    }

    /// Gets a message when the user has left the view, or the terminal is gone.
    pub fn left(&self) -> Receiver<io::Result<()>> {
        self.left.clone()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        let mut stuck = match self.tell.send_deadline(Event::Leave, deadline) {
            Err(SendTimeoutError::Timeout(_)) => true,
            // it has ended already
            Ok(()) | Err(SendTimeoutError::Disconnected(_)) => false,
        };
        // its thread has the other end until it is over: the terminal is back then
        while !stuck
            && !matches!(self.left.recv_deadline(deadline), Err(RecvTimeoutError::Disconnected))
        {
            stuck = Instant::now() >= deadline;
        }
        if stuck {
            terminal::abandon();
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let work = move || {
        // the daemon's own nice value is for what must be done in time
        let _ = setpriority_process(None, 0);
        work();
    };
    let thread = thread::Builder::new().name(name.into()).spawn(work);
    thread.context("starting a thread of the view").map(drop)
}
