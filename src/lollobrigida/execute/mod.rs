// SPDX-License-Identifier: GPL-2.0-only
//! What is done to the machine, behind one trait, so that the order of things can be
//! rehearsed and tested without doing them.

pub mod daemon;
pub mod interrupt;
pub mod real;
pub mod rights;
pub mod run;
pub mod sched_ext;
pub mod schedulers;
pub mod survey;

use anyhow::Result;

use crate::plan::Plan;
use crate::result::{Run, Scheduler, Warning};

/// The kernel's own scheduler, as `--under` and results name it.
pub const DEFAULT: &str = "default";

/// A scheduler to run a scene under: one `--under`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Under {
    /// As the user wrote it: the column's title.
    pub title: String,
    /// Program and arguments; `None`: the kernel's own scheduler ([`DEFAULT`]), or with
    /// `lollobrigida run` whichever is in charge.
    pub command: Option<Vec<String>>,
}

/// Why a scene is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Caches, frequencies and the scheduler's own state settle; the result is dropped.
    WarmUp,
    /// The n-th measured run under this scheduler, from 0.
    Measure(u32),
}

/// [`Warning::code`] of a run during which the kernel ejected the scheduler, or the
/// scheduler's program ended: what was measured is not about that scheduler alone.
pub const EJECTED: &str = "ejected";

/// Rights, or something of the kernel or the machine, are lacking. Says what and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

/// A signal came.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by a signal")]
pub struct Interrupted;

/// In the order in which it is called: survey, then per scheduler start, runs, stop, and
/// at the end, also after a failure, restore.
pub trait Executor {
    /// Looks at the machine before anything is done; what may spoil the figures.
    ///
    /// # Errors
    /// When nothing can be run here at all.
    fn survey(&mut self) -> Result<Vec<Warning>>;

    /// Starts the scheduler and waits until it is in charge.
    ///
    /// # Errors
    /// When it does not start, or another one is in charge.
    fn start(&mut self, under: &Under) -> Result<Scheduler>;

    /// Runs the plan once.
    ///
    /// # Errors
    /// When the run could not be made; a task that fails is in the result instead.
    fn run(&mut self, plan: &Plan, purpose: Purpose) -> Result<Run>;

    /// Stops the scheduler that was started and waits until the kernel's own is back.
    ///
    /// # Errors
    /// When it does not go away.
    fn stop(&mut self) -> Result<()>;

    /// Leaves the machine as it was found. Idempotent.
    ///
    /// # Errors
    /// When something could not be put back; says what.
    fn restore(&mut self) -> Result<()>;
}
