// SPDX-License-Identifier: GPL-2.0-only
//! Everything that can happen to the view. Nothing reaches the store by another way.

use std::sync::Arc;

use ratatui::crossterm::event::{KeyEvent, MouseEvent};

use crate::model::Snapshot;

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key was pressed.
    Key(KeyEvent),
    /// The mouse did something.
    Mouse(MouseEvent),
    /// The screen has another size now.
    Resize,
    /// An interval is over.
    Snapshot(Arc<Snapshot>),
    /// There will be no further snapshot, and why.
    Ended(Ended),
    /// Somebody asked the process to end: SIGTERM, SIGINT, SIGHUP.
    Leave,
    /// Somebody asked the process to stop for a while: SIGTSTP.
    Stop,
    /// It goes on after a stop: SIGCONT. Somebody else had the terminal meanwhile.
    Continued,
    /// The keyboard is gone.
    NoInput,
}

/// Why there are no further snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The recording is at its end.
    Recording,
    /// The scheduler ended.
    Scheduler,
    /// The stream broke; in words.
    Broken(String),
}
