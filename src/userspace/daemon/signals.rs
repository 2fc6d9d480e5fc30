// SPDX-License-Identifier: GPL-2.0-only
//! Signals as messages for the run loop.

use std::io::{self, IsTerminal};
use std::thread;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, bounded};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What users tell by signals. A message waits until it is taken.
pub struct Told {
    /// SIGINT or SIGTERM: to end.
    pub stop: Receiver<()>,
    /// SIGHUP: to read the rules again; where there are none, that the terminal is gone.
    pub hangup: Receiver<()>,
    /// There was a terminal that can go.
    pub on_terminal: bool,
}

/// SIGHUP waits while a daemon starts. It would end the process, which service managers take for a
/// clean end.
#[derive(Debug)]
pub struct HeldHangup {
    /// What was blocked before.
    before: SigSet,
}

impl HeldHangup {
    /// From here on it waits, until [`listen`] has made a message of it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn hold() -> nix::Result<Self> {
        let hangup = SigSet::from(Signal::SIGHUP);
        Ok(Self { before: hangup.thread_swap_mask(SigmaskHow::SIG_BLOCK)? })
    }

    /// For a program that does not call [`listen`]: it is as before.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn release(self) -> nix::Result<()> {
        self.before.thread_set_mask()
    }
}

/// From here on signals are messages, also a SIGHUP that was held: see [`HeldHangup`].
///
/// # Errors
/// When the handlers or their thread cannot be made.
pub fn listen() -> Result<Told> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("installing the signal handlers")?;
    let ((tell_stop, stop), (tell_hangup, hangup)) = (bounded(1), bounded(1));
    let listen = move || {
        for signal in signals.forever() {
            // full: the user is impatient, and has been heard
            let _ = match signal {
                SIGHUP => tell_hangup.try_send(()),
                _ => tell_stop.try_send(()),
            };
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen).context("listening to signals")?;
    SigSet::from(Signal::SIGHUP).thread_unblock().context("letting SIGHUP in")?;
    Ok(Told { stop, hangup, on_terminal: io::stdin().is_terminal() })
}
