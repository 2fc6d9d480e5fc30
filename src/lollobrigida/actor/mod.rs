// SPDX-License-Identifier: GPL-2.0-only
//! A task of a scene: a process of its own that prepares, blocks, does its plan on the
//! start signal, and tells what it counted.

pub mod board;
mod calls;
mod clock;
mod futex;
mod histogram;
mod jitter;
pub mod kernel;
mod memory;
mod prepare;
pub mod report;
mod sample;
mod work;

use std::any::Any;
use std::fs::File;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Context, Error, Result, anyhow, ensure};

pub use clock::{clocksource, in_user_mode, monotonic_ns};

use board::Board;
use report::Report;
use work::Work;

/// The process of task `index`: returns when it may exit. `board` is the inherited
/// descriptor of [`Board::fd`].
///
/// # Errors
/// When it could not do its plan; the runner finds the words in the task's report.
pub fn main(board: RawFd, index: usize) -> Result<()> {
    // opened anew: a wrong number is an error then, not somebody else's descriptor
    let file = File::options().read(true).write(true).open(format!("/proc/self/fd/{board}"));
    let file = file.with_context(|| format!("descriptor {board} is not open for this task"))?;
    let board = Board::open(file.into())?;
    let tasks = board.plan().tasks.len();
    ensure!(index < tasks, "the board has {tasks} tasks, none of number {index}");
    let error = match catch_unwind(AssertUnwindSafe(|| measured(&board, index))) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::from(anyhow!("a fault of lollobrigida itself: {}", words(&*panic))),
    };
    let Failure { error, mut report } = error;
    report.failed = Some(format!("{error:#}"));
    board.fail(index, *report);
    Err(error)
}

/// With what was counted up to it.
struct Failure {
    error: Error,
    report: Box<Report>,
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), report: Box::default() }
    }
}

fn measured(board: &Board, index: usize) -> Result<(), Failure> {
    let task = &board.plan().tasks[index];
    prepare::identity(board.runner(), &board.plan().groups[task.group], task.nth)?;
    prepare::signals()?;
    let mut work = Work::prepare(board, index)?;
    board.bring_in_links(index);
    let notes = prepare::memory();
    work.rehearse().context("a system call of the scene failed when it was tried")?;
    let start_ns = board.ready(index);
    let outcome = work.run(start_ns);
    let calls = board.close_links(index);
    if let Err(e) = outcome {
        let error = Error::from(e).context("a system call of the scene failed");
        return Err(Failure { error, report: Box::new(Report { notes, ..work.into_report() }) });
    }
    let calls_after_end = calls + board.done(index);
    board.tell(index, Report { notes, calls_after_end, ..work.into_report() });
    Ok(())
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words")
}
