// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis export RECORDING --perfetto OUT.json`: Chrome's JSON trace events
//! (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), which
//! Perfetto's UI opens.
//!
//! Two sorts of tracks: one for each CPU, beneath a process of their own, and one for each task,
//! beneath its process. Times are microseconds since the scheduler began.

mod event;
#[cfg(test)]
mod tests;
mod trace;

use std::io::Write;

use anyhow::Context;

pub use trace::{Told, Trace};

use super::whole::{create, each_interval};
use super::words::count;
use crate::cli::Export;
use crate::exit::Failure;

/// Answers `scx_artis export`.
///
/// # Errors
/// When the recording cannot be read or the trace not be written.
pub fn execute(args: &Export, out: &mut dyn Write) -> Result<(), Failure> {
    let writing = || format!("writing {}", args.perfetto.display());
    // a recording that cannot be read leaves the file as it was
    let mut trace = None;
    let mut out = Some(out);
    each_interval(&args.recording, |interval| {
        if let Some(out) = out.take() {
            trace = Some(
                Trace::new(create(&args.perfetto, out)?, &interval.snapshot.begin)
                    .with_context(writing)?,
            );
        }
        let Some(trace) = &mut trace else { return Ok(()) };
        Ok(trace.interval(interval).with_context(writing)?)
    })?;
    let Some(trace) = trace else { return Ok(()) };
    let told = trace.finish().with_context(writing)?;
    eprintln!("scx_artis: {}", sum(&told, &args.perfetto.display().to_string()));
    Ok(())
}

/// What is in a trace, and what is not and why.
fn sum(told: &Told, file: &str) -> String {
    let mut text = format!(
        "{file} has {}, {} and {}; open it at ui.perfetto.dev",
        count(told.runs, "run"),
        count(told.evictions, "eviction"),
        count(told.moves, "move")
    );
    if told.runs == 0 {
        text += ". Runs are there if they were recorded: scx_artis record --runs";
    }
    if told.evictions + told.moves == 0 {
        text += ". Evictions and moves are there if they were recorded: scx_artis record --events";
    }
    if told.left_out > 0 {
        text +=
            &format!(". {} were more than one interval can hold", count(told.left_out, "event"));
    }
    text
}
