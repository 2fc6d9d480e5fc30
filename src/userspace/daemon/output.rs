// SPDX-License-Identifier: GPL-2.0-only
//! What a running daemon shows by itself: lines, the view, or nothing.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, never, tick};

use crate::cli::Opts;
use crate::feed::Hub;
use crate::model::{Begin, Metrics, Reading};
use crate::outlets::line;
use crate::outlets::top::{inside::Inside, terminal};

/// Where the daemon itself shows what happens.
pub enum Output {
    /// Nobody would see it.
    Nowhere,
    /// Lines on stdout, one in each of these.
    Lines(Duration),
    /// The view, once there is something to see.
    View(Option<Inside>),
}

impl Output {
    /// As the options and the terminal have it.
    pub fn new(opts: &Opts) -> Self {
        match opts.output.stats {
            Some(secs) => Self::Lines(Duration::from_secs_f64(secs)),
            None if terminal::is_fit() => Self::View(None),
            None if io::stdout().is_terminal() => Self::Lines(Duration::from_secs(1)),
            None => Self::Nowhere,
        }
    }

    /// When the run loop is to call [`Self::show`].
    pub fn ticks(&self) -> Receiver<Instant> {
        match self {
            Self::Lines(interval) => tick(*interval),
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
            Self::View(Some(_)) => {} // a restart
            Self::View(view) => *view = Some(Inside::start(hub)?),
            Self::Nowhere | Self::Lines(_) => eprintln!(
                "scx_artis: {} is in charge: RT CPUs {}, NRT CPUs {}, preemption {}",
                begin.ops_name, begin.rt_cpus, begin.nrt_cpus, begin.preemption
            ),
        }
        Ok(())
    }

    /// Says that something has changed, and by what; the view shows it itself.
    pub fn tell(&self, text: &str, by: &str) {
        if !matches!(self, Self::View(_)) {
            eprintln!("scx_artis: {text}, by {by}");
        }
    }

    /// Writes a line.
    ///
    /// # Errors
    /// When stdout is gone.
    pub fn show(&self, metrics: &Metrics) -> Result<()> {
        writeln!(io::stdout(), "{}", line::render(metrics)).context("stdout is gone")
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
    eprintln!(
        "scx_artis: scheduler unloaded, the kernel's default took over; ran {:.1} s, evictions {}, \
         bodies on RT CPUs {}",
        totals.uptime_s, totals.evictions, totals.bodies_on_rt
    );
}
