// SPDX-License-Identifier: GPL-2.0-only
//! The command line. Only what clap can say; the files beside this one do it.

pub mod exit;
mod files;
mod manual;
mod measure;
mod output;
mod progress;
mod rehearse;
mod scene;

use std::path::PathBuf;

use clap::{ArgGroup, Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use crate::actor;
use crate::compare::order::Order;
use exit::{EXIT_CODES_HELP, Failure};

const EXAMPLES: &str = "\
Examples:
  lollobrigida scenes                          what is there to run
  lollobrigida run annexb --short              one scene, under whichever scheduler is in charge
  lollobrigida rehearse my.toml                what would be run, and may I?
  lollobrigida compare annexb --under default --under scx_artis --under scx_bpfland --html r.html";

/// Runs the same scene of tasks under any scheduler and shows how it behaved.
///
/// A scene is a file that says which tasks there are and what each of them does: so much
/// computing, sleeps, periods, system calls. All of them start on one signal; what they do
/// depends on the scene alone. What differs between two runs is the scheduler's doing.
#[derive(Debug, Parser)]
#[command(name = "lollobrigida", version, after_help = EXIT_CODES_HELP)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES_HELP}"))]
pub struct Opts {
    #[allow(missing_docs)]
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scene under whichever scheduler is in charge
    Run(RunArgs),
    /// Run a scene under several schedulers in turn, and compare
    Compare(CompareArgs),
    /// Say what would be run, in which order, and which rights it needs; run nothing
    Rehearse(RehearseArgs),
    /// List the scenes that come with the program, or print one of them
    Scenes {
        /// Print this scene's file
        name: Option<String>,
    },
    /// Read scenes and tell every mistake in them
    Check {
        /// Files, or names of scenes that come with the program
        #[arg(required = true, value_name = "SCENE")]
        scenes: Vec<String>,
    },
    /// Turn a scene of the old format (annex B) into TOML
    Convert {
        /// The file
        file: PathBuf,
        /// Write it there instead of standard output
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Print what makes a shell complete this program's arguments
    Completions {
        /// For this shell
        shell: Shell,
    },
    /// Print the manual page (man -l /dev/stdin shows it)
    #[command(hide = true)]
    Man,
    /// A task of a scene; the runner starts these itself
    #[command(hide = true)]
    Actor(ActorArgs),
}

/// Of `lollobrigida run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub scene: SceneArgs,
    /// Measured runs; more than one are shown as means with their spread
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Runs before these that are not measured
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub warmup: u32,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Of `lollobrigida compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub scene: SceneArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub turns: TurnArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Of `lollobrigida rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    #[allow(missing_docs)]
    #[command(flatten)]
    pub scene: SceneArgs,
    #[allow(missing_docs)]
    #[command(flatten)]
    pub turns: TurnArgs,
}

/// Which scene, and how it is read.
#[derive(Debug, Args)]
pub struct SceneArgs {
    /// A file, or the name of a scene that comes with the program
    pub scene: String,
    /// Do so much of the work: 0.1 for a tenth. Bursts, sleeps and periods stay as they are
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = positive)]
    pub scale: f64,
    /// Do so little of the work that a run is expected to take half a second: to see
    /// that it works, not to measure
    #[arg(long, conflicts_with = "scale")]
    pub short: bool,
    /// Speed of this machine, in iterations of the computing kernel per microsecond;
    /// measured once and remembered unless told
    #[arg(long, value_name = "N", value_parser = positive)]
    pub loops_per_us: Option<f64>,
    /// How long an iteration (loop) of the scene shall take, µs: old scenes keep their ratio
    /// of computing to sleeping on a fast machine
    #[arg(long, value_name = "US", value_parser = positive)]
    pub iteration_us: Option<f64>,
    /// Of all that is random: start offsets, jitter, and --order random
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop a run after so long, whatever the scene says
    #[arg(long, value_name = "SECS", value_parser = positive)]
    pub limit: Option<f64>,
}

/// Which schedulers, and how they take turns.
#[derive(Debug, Args)]
pub struct TurnArgs {
    /// A scheduler: 'default' (the kernel's own) or a program, with its arguments after a
    /// colon; {rt_cpus} in them stands for the scene's. Repeat it; the first is what the
    /// others are compared to
    #[arg(long = "under", value_name = "NAME[:ARGS]", required = false)]
    pub unders: Vec<String>,
    /// Measured runs under each
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
    /// Runs after each change of the scheduler that are not measured
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(..=1000))]
    pub warmup: u32,
    /// In which order they take turns
    #[arg(long, value_name = "ORDER", default_value = "abba")]
    pub order: Order,
}

/// Where the result goes. Files are written whole or not at all.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
#[command(group = ArgGroup::new("stdout").multiple(true))]
pub struct OutputArgs {
    /// Write all figures as JSON, to standard output (instead of the table) unless told where
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Write a row for each task of each run as CSV, to standard output unless told where
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub csv: Option<PathBuf>,
    /// Write a page with charts, without anything outside of it
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// A row for every task in the table, however many there are
    #[arg(long)]
    pub tasks: bool,
    /// No table and no progress
    #[arg(short, long)]
    pub quiet: bool,
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

/// A number above 0 that is not infinite.
fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        Ok(number) => Err(format!("{number} is not above 0 and finite")),
        Err(_) => Err("not a number".to_owned()),
    }
}

/// Does what the command line says.
///
/// # Errors
/// See [`Failure`].
pub fn execute(opts: Opts) -> Result<(), Failure> {
    match opts.command {
        Command::Run(args) => measure::run(&args),
        Command::Compare(args) => measure::compare(&args),
        Command::Rehearse(args) => rehearse::rehearse(&args),
        Command::Scenes { name: None } => files::list(),
        Command::Scenes { name: Some(name) } => files::print(&name),
        Command::Check { scenes } => files::check(&scenes),
        Command::Convert { file, out } => files::convert(&file, out.as_deref()),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Opts::command(), "lollobrigida", &mut text);
            output::to_stdout(&text)
        }
        Command::Man => output::to_stdout(&manual::page()?),
        Command::Actor(args) => Ok(actor::main(args.board_fd, args.task)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_sound() {
        Opts::command().debug_assert();
    }
}
