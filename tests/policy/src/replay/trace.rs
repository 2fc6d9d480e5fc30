// SPDX-License-Identifier: GPL-2.0-only
//! What happened to tasks: text lines, one event each, in the order of the clock.
//!
//! ```text
//! # task,run_ns,clock_ns,event
//! 7,1500000,812003500000,attempt
//! 7,1620000,812003620000,run
//! 7,1620000,812009000000,place
//! ```
//!
//! `task` is any number that tells tasks apart (a thread id); `run_ns` the run time that the task
//! has had so far (`p->se.sum_exec_runtime`); `clock_ns` the scheduler's clock. Events:
//!
//! - `attempt`: it enters the kernel in an endangering way (a system call or a page fault);
//! - `run`: it stops running, or its slice ends: its history is brought up to date;
//! - `place`: the scheduler could move it to an RT CPU, or take it back: at the end of a slice
//!   and at each balancing pass while it waits.
//!
//! Empty lines and those that begin with `#` are left out.

use std::fmt;
use std::io::BufRead;

/// Kind of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An endangering kernel entry.
    Attempt,
    /// The end of a run: time to charge.
    Run,
    /// A decision about where the task goes.
    Place,
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Number of the task.
    pub task: u32,
    /// Run time of the task so far, ns.
    pub run_ns: u64,
    /// The scheduler's clock, ns.
    pub clock_ns: u64,
    /// What happened.
    pub what: What,
}

/// A line that is no event.
#[derive(Debug)]
pub struct TraceError {
    line: usize,
    text: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "line {}: {:?} is not \"task,run_ns,clock_ns,attempt|run|place\"",
            self.line, self.text
        )
    }
}

impl std::error::Error for TraceError {}

fn parse(line: &str) -> Option<Event> {
    let mut fields = line.split(',').map(str::trim);
    let event = Event {
        task: fields.next()?.parse().ok()?,
        run_ns: fields.next()?.parse().ok()?,
        clock_ns: fields.next()?.parse().ok()?,
        what: match fields.next()? {
            "attempt" => What::Attempt,
            "run" => What::Run,
            "place" => What::Place,
            _ => return None,
        },
    };
    fields.next().is_none().then_some(event)
}

/// Reads a whole trace.
///
/// # Errors
/// When a line is no event, or cannot be read.
pub fn read(input: impl BufRead) -> Result<Vec<Event>, Box<dyn std::error::Error>> {
    let mut events = Vec::new();
    for (i, text) in input.lines().enumerate() {
        let text = text?;
        if !text.trim().is_empty() && !text.starts_with('#') {
            events.push(parse(&text).ok_or(TraceError { line: i + 1, text })?);
        }
    }
    Ok(events)
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = match self.what {
            What::Attempt => "attempt",
            What::Run => "run",
            What::Place => "place",
        };
        write!(f, "{},{},{},{what}", self.task, self.run_ns, self.clock_ns)
    }
}
