// SPDX-License-Identifier: GPL-2.0-only
//! SIGINT, SIGTERM and SIGHUP become a flag: a run is stopped in good order, and the
//! machine is given back.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use super::run::signals;

static PENDING: AtomicBool = AtomicBool::new(false);

/// From now on the signals set the flag instead of ending the program.
///
/// # Errors
/// When the handler cannot be installed, or was already.
pub fn install() -> Result<()> {
    ctrlc::set_handler(|| PENDING.store(true, Ordering::Relaxed))
        .context("installing the signal handler")
}

/// Has a signal come, between two runs or during one? (A run catches them itself.)
#[must_use]
pub fn pending() -> bool {
    PENDING.load(Ordering::Relaxed) || signals::came()
}
