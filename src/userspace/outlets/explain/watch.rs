// SPDX-License-Identifier: GPL-2.0-only
//! Watches one task for a while, or to the end of a recording.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::{Seen, Story, render};
use crate::cli::Explain;
use crate::exit::Failure;
use crate::feed::{self, Source, Wanted};
use crate::model::Task;
use crate::outlets::words::ns;

/// Width of the text where it does not go to a terminal, and the most on one that is wider.
const WIDTHS: (usize, usize) = (80, 100);
/// Longest interval between two looks.
const INTERVAL_MAX: Duration = Duration::from_secs(1);
/// The daemon may be so late with an interval: it is a task among others.
const GRACE: Duration = Duration::from_secs(5);

/// Answers `scx_artis explain`.
///
/// # Errors
/// [`Failure::NoTask`] when nothing was seen of the task, and what [`feed::source`] says.
pub fn execute(args: &Explain, out: &mut dyn Write) -> Result<(), Failure> {
    let time = Duration::from_secs_f64(args.seconds);
    let interval = time.min(INTERVAL_MAX).max(Wanted::INTERVAL_MIN);
    let mut source = feed::source(args.replay.as_deref(), Wanted::every(interval))?;
    let until = args.replay.is_none().then(|| Instant::now() + time + GRACE);
    let watched = watch(&mut source, args.pid, args.replay.is_none().then_some(time), until)?;
    let how = match &args.replay {
        Some(path) => format!(
            "This is from the recording {}, of {}; it is as it was at its end.",
            path.display(),
            ns(watched.time_s * 1e9)
        ),
        None => format!(
            "It was watched for {}. Totals are of all the time in which somebody watched.",
            ns(watched.time_s * 1e9)
        ),
    };
    let task = watched.task.ok_or_else(|| nobody(args))?;
    let seen = Seen::new(source.last(), task);
    let story = Story::of(&seen, &how);
    let text = if args.json {
        serde_json::to_string_pretty(&story).context("writing JSON")? + "\n"
    } else {
        let terminal = std::io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        render(&story, terminal.map_or(WIDTHS.0, |(width, _)| usize::from(width.0).min(WIDTHS.1)))
    };
    Ok(out.write_all(text.as_bytes()).context("writing to stdout")?)
}

/// What came of watching.
struct Watched {
    /// The task as it was last seen.
    task: Option<Arc<Task>>,
    /// How long it was watched, seconds.
    time_s: f64,
}

/// Watches `pid` for `time`, or to the end of the stream; not beyond `until`.
fn watch(
    source: &mut Source,
    pid: u64,
    time: Option<Duration>,
    until: Option<Instant>,
) -> Result<Watched, Failure> {
    let mut watched = Watched { task: None, time_s: 0.0 };
    // an interval that is a little short is the last one, too
    let enough = |time_s: f64| time.is_some_and(|time| time_s >= 0.9 * time.as_secs_f64());
    while !enough(watched.time_s) {
        let Some(snapshot) = source.next(until)? else { break };
        watched.time_s += snapshot.machine.interval_s;
        // of one that has ended the last sight is kept
        if let Some(task) = snapshot.tasks.get(&pid) {
            watched.task = Some(Arc::clone(task));
        }
    }
    Ok(watched)
}

/// What to do about a task that was not seen.
fn nobody(args: &Explain) -> Failure {
    let pid = args.pid;
    Failure::NoTask(match &args.replay {
        Some(path) => format!(
            "thread {pid} is not in the recording {}: scx_artis report OUT.html --from {0} has a \
             table of the tasks that are",
            path.display()
        ),
        None => format!(
            "there is no thread {pid} that scx_artis knows: see ps -eLo tid,comm for those that \
             there are; a thread that ended leaves nothing behind but in recordings (--replay)"
        ),
    })
}
