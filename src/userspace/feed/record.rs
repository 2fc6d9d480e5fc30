// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis record`: from the daemon's socket into a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::frame::{Frame, Record as Said, kind};
use super::recording::Recorder;
use super::stream::{Next, Stream};
use super::{SOCKET, Wanted, client};
use crate::cli::Record;
use crate::exit::Failure;
use crate::model::{Lost, Reading};

/// How long Ctrl-C may go unnoticed.
const LOOK: Duration = Duration::from_millis(100);

/// What was recorded.
#[derive(Debug, Default)]
struct Written {
    intervals: u64,
    records: u64,
    first: Option<Reading>,
    last: Option<Reading>,
    /// Records that the stream says it lost.
    lost: u64,
}

/// Records until the daemon, the user or the time ends it, and says what was written.
///
/// # Errors
/// When the file cannot be made or written, or there is nothing to record.
pub fn execute(record: &Record) -> Result<(), Failure> {
    let mut recorder = Recorder::create(&record.file)?;
    let wanted = Wanted { events: record.events, runs: record.runs, ..Wanted::default() };
    let stream = client::connect(Path::new(SOCKET), wanted).inspect_err(|_| {
        let _ = fs::remove_file(&record.file); // nothing is in it
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    ctrlc::set_handler(move || told.store(true, Ordering::Relaxed))
        .context("installing the signal handler")?;
    let until = if record.secs.is_some() { "" } else { "; Ctrl-C ends it" };
    eprintln!("scx_artis: recording to {}{until}", record.file.display());
    let for_ns = record.secs.map(|secs| secs * 1e9);
    let written = copy(stream, &mut recorder, for_ns, wanted.interval, &stop)?;
    let bytes = recorder.finish()?;
    eprintln!("scx_artis: {}: {}", record.file.display(), written.summary(bytes));
    Ok(())
}

/// Copies until the end of the stream, until `stop`, or until the end of the interval in which
/// `for_ns` are over, to half an interval.
fn copy(
    mut stream: Stream,
    recorder: &mut Recorder,
    for_ns: Option<f64>,
    interval: Duration,
    stop: &AtomicBool,
) -> Result<Written, Failure> {
    let enough_ns = for_ns.map(|ns| ns - interval.as_nanos() as f64 / 2.0);
    let mut written = Written::default();
    while !stop.load(Ordering::Relaxed) {
        match stream.next(Some(Instant::now() + LOOK))? {
            Next::Frame(frame) => {
                recorder.add(&frame)?;
                let ended = written.add(&frame)?;
                if ended && enough_ns.is_some_and(|ns| written.recorded_ns() >= ns) {
                    break;
                }
            }
            Next::TimedOut => {}
            Next::End => {
                eprintln!("scx_artis: the scheduler has ended");
                break;
            }
        }
    }
    Ok(written)
}

impl Written {
    /// Returns whether the frame ends an interval.
    fn add(&mut self, frame: &Frame<'_>) -> Result<bool, Failure> {
        self.records += u64::from(frame.is_of_bpf());
        if !matches!(frame.kind, kind::READING | kind::LOST) {
            return Ok(false);
        }
        match frame.record().map_err(anyhow::Error::from)? {
            Said::Lost(lost) => self.lost = lost.feed,
            Said::Reading(reading) => {
                if self.first.is_none() {
                    self.first = Some(*reading);
                    return Ok(false);
                }
                self.last = Some(*reading);
                self.intervals += 1;
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn recorded_ns(&self) -> f64 {
        let ends = self.first.as_ref().zip(self.last.as_ref());
        ends.map_or(0.0, |(first, last)| last.now_ns.saturating_sub(first.now_ns) as f64)
    }

    fn lost(&self) -> Lost {
        let ends = self.first.as_ref().zip(self.last.as_ref());
        let (ring, over_budget) = ends.map_or((0, 0), |(first, last)| {
            let (now, before) = (last.lost(), first.lost());
            (now.0.saturating_sub(before.0), now.1.saturating_sub(before.1))
        });
        Lost { ring, over_budget, feed: self.lost }
    }

    fn summary(&self, bytes: u64) -> String {
        let Self { intervals, records, .. } = self;
        let lost = self.lost();
        let mut text = format!(
            "{intervals} intervals, {:.1} s, {records} records, {bytes} bytes",
            self.recorded_ns() / 1e9
        );
        for (n, what) in [
            (lost.ring, "lost because the ring buffer was full (scx_artis --ring-kb)"),
            (lost.over_budget, "not written because of the budget (ctl set record-budget)"),
            (lost.feed, "lost because this was too slow"),
        ] {
            if n > 0 {
                text += &format!(", {n} {what}");
            }
        }
        if lost == Lost::default() {
            text += ", none lost";
        }
        text
    }
}
