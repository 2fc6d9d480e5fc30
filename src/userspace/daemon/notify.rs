// SPDX-License-Identifier: GPL-2.0-only
//! What the service manager is told by sd_notify(3): that the scheduler is in charge, that the rules
//! are read again, that the run loop still runs, and the end. Without a manager nothing is told.
//!
//! The run loop itself sends, so a loop that hangs is seen. A datagram waits for room only if the
//! manager has left some hundred of them unread, hours of them at the period of the unit.

use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, never, tick};
use sd_notify::NotifyState;

/// Shortest time between two signs of life.
const PULSE_MIN: Duration = Duration::from_millis(10);

/// The service manager, if there is one.
pub struct Manager {
    /// When it wants a sign of life.
    pulse: Receiver<Instant>,
    has_ended: bool,
}

impl Manager {
    /// The manager that the environment names (NOTIFY_SOCKET, WATCHDOG_USEC).
    pub fn new() -> Self {
        // half of what it waits for, as sd_watchdog_enabled(3) recommends
        let half = |asked: Duration| (asked / 2).max(PULSE_MIN);
        let period = sd_notify::watchdog_enabled().filter(|asked| !asked.is_zero()).map(half);
        let pulse = period.map_or_else(never, tick);
        Self { pulse, has_ended: false }
    }

    /// When the run loop is to call [`Self::alive`].
    pub fn pulse(&self) -> Receiver<Instant> {
        self.pulse.clone()
    }

    /// The run loop runs. To be called after [`Self::ready`]: this starts the manager's watch, and
    /// loading takes as long as it takes, within TimeoutStartSec=.
    pub fn alive(&self) {
        tell(&[NotifyState::Watchdog]);
    }

    /// The scheduler is in charge, or goes on after [`Self::reloading`].
    pub fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// What is in force has changed.
    pub fn status(&self, status: &str) {
        tell(&[NotifyState::Status(status)]);
    }

    /// The rules are read again, until [`Self::ready`].
    pub fn reloading(&self) {
        // by this time the manager tells the answer to its signal from an earlier message
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => log::warn!("the monotonic clock cannot be read: {error}"),
        }
    }

    /// The machine is being given back. Said once.
    pub fn stopping(&mut self) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let status = NotifyState::Status("giving the machine back");
            tell(&[NotifyState::Stopping, status]);
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        log::warn!("the service manager cannot be told how scx_artis is: {error}");
    }
}
