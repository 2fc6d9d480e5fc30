// SPDX-License-Identifier: GPL-2.0-only
//! Brings the snapshots of a stream to the view, those of a recording at its pace.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use super::event::{Ended, Event};
use super::run::Pace;
use crate::feed::Source;

/// Snapshots that may wait for the view.
pub const WAITING: usize = 4;
/// How soon another pace is heeded.
const STEP: Duration = Duration::from_millis(20);
/// A pause of a recording that is longer (its scheduler was restarted) is not waited for, s.
const GAP_MAX_S: f64 = 120.0;

/// From a stream to the view.
pub struct Pump {
    /// The stream.
    pub source: Source,
    /// The view.
    pub tell: Sender<Event>,
    /// How fast to play; `None`: it happens now.
    pub pace: Option<Pace>,
    /// Intervals after which the view is to end.
    pub count: Option<u64>,
}

impl Pump {
    /// Brings all that comes until the stream or the view ends.
    pub fn run(mut self) {
        let mut left = self.count.unwrap_or(u64::MAX);
        let mut before_s = None;
        while left > 0 {
            let event = match self.source.next(None) {
                Ok(Some(snapshot)) => Event::Snapshot(Arc::new(snapshot.clone())),
                Ok(None) if self.pace.is_some() => Event::Ended(Ended::Recording),
                Ok(None) => Event::Ended(Ended::Scheduler),
                Err(failure) => Event::Ended(Ended::Broken(failure.to_string())),
            };
            if let (Event::Snapshot(snapshot), Some(pace)) = (&event, &self.pace) {
                let now_s = snapshot.machine.uptime_s;
                if let Some(before_s) = before_s {
                    wait(now_s - before_s, pace);
                }
                before_s = Some(now_s);
            }
            let is_end = matches!(event, Event::Ended(_));
            if self.tell.send(event).is_err() || is_end {
                return; // the last interval stays in sight until the user leaves
            }
            left -= 1;
        }
        // whether somebody is left to hear it does not matter
        let _ = self.tell.send(Event::Leave);
    }
}

/// Waits for `secs` of the recording at `pace`, which may change meanwhile.
fn wait(secs: f64, pace: &Pace) {
    let mut left_s = if (0.0..GAP_MAX_S).contains(&secs) { secs } else { 0.0 };
    let mut last = Instant::now();
    while left_s > 0.0 {
        thread::sleep(STEP.min(Duration::from_secs_f64(left_s / pace.get())));
        left_s -= last.elapsed().as_secs_f64() * pace.get();
        last = Instant::now();
    }
}
