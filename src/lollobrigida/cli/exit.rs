// SPDX-License-Identifier: GPL-2.0-only
//! How the program ends: one exit code for each kind of failure.

use std::process::ExitCode;

use crate::execute::{Interrupted, Unfit};

/// The text of the exit codes in `--help` and in the manual page.
pub const EXIT_CODES_HELP: &str = "\
Exit codes:
  0    all was done
  1    a run failed, a task did not finish, or a scheduler was ejected; what was measured is printed
  2    bad arguments, or a scene that cannot be used
  3    rights, or something of the kernel or the machine, are lacking: nothing was run
  130  interrupted by a signal; what was measured is printed";

/// Why the program did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 1: something that should work did not. Code 3 or 130 if the cause is
    /// [`Unfit`] or [`Interrupted`].
    #[error("{0:#}")]
    Unexpected(#[from] anyhow::Error),
    /// Exit code 1: the report says all of it.
    #[error("{0}")]
    NotGood(String),
    /// Exit code 2: the arguments or a scene. The text may have several lines.
    #[error("{0}")]
    Usage(String),
}

impl Failure {
    /// The exit code that tells a caller which kind of failure this was.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Unexpected(error) if error.is::<Unfit>() => 3,
            Self::Unexpected(error) if error.is::<Interrupted>() => 130,
            Self::Unexpected(_) | Self::NotGood(_) => 1,
            Self::Usage(_) => 2,
        }
    }
}

/// Prints a failure on stderr and turns the result into an exit code.
#[must_use]
pub fn conclude(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lollobrigida: {failure}");
            ExitCode::from(failure.code())
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn a_cause_below_other_words_decides_the_code() {
        let unfit: anyhow::Result<()> = Err(Unfit("no".into()).into());
        let wrapped = unfit.context("starting scx_x").expect_err("an error");
        assert_eq!(Failure::from(wrapped).code(), 3);
        assert_eq!(Failure::from(anyhow::Error::from(Interrupted)).code(), 130);
        assert_eq!(Failure::from(anyhow::anyhow!("else")).code(), 1);
        assert_eq!(Failure::Usage(String::new()).code(), 2);
    }
}
