// SPDX-License-Identifier: GPL-2.0-only
//! Signals as messages for the run loop.

use std::thread;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, bounded};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What users tell by signals. A message waits until it is taken.
pub struct Told {
    /// SIGINT or SIGTERM: to end.
    pub stop: Receiver<()>,
    /// SIGHUP: to read the rules again, or to end where there are none.
    pub hangup: Receiver<()>,
}

/// From here on signals are messages.
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
    Ok(Told { stop, hangup })
}
