// SPDX-License-Identifier: GPL-2.0-only
//! How the program ends: one exit code for each kind of failure.

use std::process::ExitCode;

use crate::config::ConfigError;
use crate::daemon::log::say;

/// The text of the exit codes in `--help`.
pub const EXIT_CODES_HELP: &str = "\
Exit codes:
  0  stopped by the user, or the question was answered
  1  unexpected error
  2  bad arguments, or a configuration that this machine cannot have
  3  preflight found the machine unfit, or ctl no scx_artis to talk to: nothing was changed
  4  the kernel ejected the scheduler (its reason is on stderr), or did not take a change by ctl
  5  explain: there is no such task";

/// Why the program did not end well. Each variant is one exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 1: something that should work did not.
    #[error("{0:#}")]
    Unexpected(#[from] anyhow::Error),
    /// Exit code 2: the arguments do not fit each other or the machine.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Exit code 3: preflight found what keeps the scheduler from working, or no daemon
    /// runs that could be controlled.
    #[error("{0}")]
    Unfit(String),
    /// Exit code 4: the kernel ended the scheduler. The report is printed already.
    #[error("the kernel ejected the scheduler: {0}")]
    Ejected(String),
    /// Exit code 4: a change to the running scheduler was refused by it, or by the kernel.
    #[error("the scheduler in charge did not take the change: {0:#}")]
    NotTaken(anyhow::Error),
    /// Exit code 5: the task that was asked about is not there.
    #[error("{0}")]
    NoTask(String),
    /// What the running daemon answered, and the exit code that goes with it.
    #[error("{text}")]
    Told {
        /// One of the codes above.
        code: u8,
        /// What it said.
        text: String,
    },
}

impl Failure {
    /// The exit code that tells a caller which kind of failure this was.
    pub fn code(&self) -> u8 {
        match self {
            Self::Unexpected(_) => 1,
            Self::Config(_) => 2,
            Self::Unfit(_) => 3,
            Self::Ejected(_) | Self::NotTaken(_) => 4,
            Self::NoTask(_) => 5,
            Self::Told { code, .. } => *code,
        }
    }
}

/// Prints a failure on stderr and turns the result into an exit code.
pub fn conclude(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(format_args!("scx_artis: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}
