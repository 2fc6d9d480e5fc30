// SPDX-License-Identifier: GPL-2.0-only
//! What a running daemon shows by itself: lines, the view, or nothing.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, never, tick};

use super::log::{lost, say};
use crate::cli::Opts;
use crate::feed::Hub;
use crate::model::{Begin, Metrics, Reading};
use crate::outlets::line;
use crate::outlets::top::{inside::Inside, terminal};

/// Lines that may wait for stdout.
const WAITING: usize = 16;

/// Where the daemon itself shows what happens.
pub enum Output {
    /// Nobody would see it.
    Nowhere,
    /// Lines on stdout, one in each of these.
    Lines(Duration, Sender<String>),
    /// The view, once there is something to see.
    View(Option<Inside>),
}

impl Output {
    /// As the options and the terminal have it.
    pub fn new(opts: &Opts) -> Self {
        match opts.output.stats {
            Some(secs) => Self::lines(Duration::from_secs_f64(secs)),
            None if terminal::is_fit() => Self::View(None),
            None if io::stdout().is_terminal() => Self::lines(Duration::from_secs(1)),
            None => Self::Nowhere,
        }
    }

    /// A thread writes them: the run loop does not wait for stdout.
    fn lines(interval: Duration) -> Self {
        let (tell, told) = bounded::<String>(WAITING);
        let write = move || {
            let mut stdout = io::stdout();
            // until stdout is gone, or the daemon
            let _ = told.iter().try_for_each(|line| writeln!(stdout, "{line}"));
        };
        // without it the other end is gone, as if stdout were
        let _ = thread::Builder::new().name("lines".into()).spawn(write);
        Self::Lines(interval, tell)
    }

    /// When the run loop is to call [`Self::show`].
    pub fn ticks(&self) -> Receiver<Instant> {
        match self {
            Self::Lines(interval, _) => tick(*interval),
            Self::Nowhere | Self::View(_) => never(),
        }
    }

    /// Gets a message when the user has left the view.
    pub fn left(&self) -> Receiver<io::Result<()>> {
        match self {
            Self::View(Some(view)) => view.left(),
            _ => never(),
        }
    }

    /// Says that the scheduler is in charge; the view says it itself.
    ///
    /// # Errors
    /// When the view cannot be started.
    pub fn begin(&mut self, begin: &Begin, hub: &Arc<Hub>) -> Result<()> {
        match self {
            Self::View(view) => *view = Some(Inside::start(hub)?),
            Self::Nowhere | Self::Lines(..) => say(format_args!(
                "scx_artis: {} is in charge: RT CPUs {}, NRT CPUs {}, preemption {}",
                begin.ops_name, begin.rt_cpus, begin.nrt_cpus, begin.preemption
            )),
        }
        Ok(())
    }

    /// Says that something has changed, and by what; the view shows it itself.
    pub fn tell(&self, text: &str, by: &str) {
        if !matches!(self, Self::View(_)) {
            say(format_args!("scx_artis: {text}, by {by}"));
        }
    }

    /// Writes a line; while stdout takes nothing, it is left out, and all are once it is gone.
    pub fn show(&mut self, metrics: &Metrics) {
        if let Self::Lines(_, tell) = self
            && let Err(TrySendError::Disconnected(_)) = tell.try_send(line::render(metrics))
        {
            log::warn!("stdout is gone: no more lines (scx_artis top shows what happens)");
            *self = Self::Nowhere;
        }
    }

    /// Gives the terminal back: what is said from now on is for the shell's screen.
    pub fn end(&mut self) {
        if let Self::View(view) = self {
            *view = None;
        }
    }
}

/// Says what became of it all.
pub fn say_farewell(last: &Reading) {
    let totals = Metrics::between(None, last);
    let causes = totals.body_causes();
    say(format_args!(
        "scx_artis: scheduler unloaded, the kernel's default took over; ran {:.1} s, evictions {}, \
         bodies on RT CPUs {}{}{causes}",
        totals.uptime_s,
        totals.evictions,
        totals.bodies_on_rt,
        if causes.is_empty() { "" } else { ", the latest: " },
    ));
    match lost() {
        0 => {}
        messages => say(format_args!("scx_artis: {messages} messages were lost: stderr was stuck")),
    }
}
