// SPDX-License-Identifier: GPL-2.0-only
//! The command line. Only what clap can say; the files beside this one do it.

pub mod exit;

use clap::{Args, Parser, Subcommand};

use crate::actor;
use exit::{EXIT_CODES_HELP, Failure};

/// Runs the same scene of tasks under any scheduler and shows how it behaved.
#[derive(Debug, Parser)]
#[command(name = "lollobrigida", version, after_help = EXIT_CODES_HELP)]
pub struct Opts {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A task of a scene; the runner starts these itself
    #[command(hide = true)]
    Actor(ActorArgs),
}

/// Of the hidden command `actor`.
#[derive(Debug, Args)]
pub struct ActorArgs {
    /// Inherited file descriptor of the memory that the runner and its tasks share
    #[arg(long, value_name = "N")]
    pub board_fd: i32,
    /// Index of the task in the plan
    #[arg(long, value_name = "I")]
    pub task: usize,
}

/// Does what the command line says.
///
/// # Errors
/// See [`Failure`].
pub fn execute(opts: Opts) -> Result<(), Failure> {
    match opts.command {
        Command::Actor(args) => Ok(actor::main(args.board_fd, args.task)?),
    }
}
