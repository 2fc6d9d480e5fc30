// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis explain`.

use std::path::PathBuf;

use clap::Args;

use super::interval_secs;

const EXAMPLES: &str = "\
Examples:
  scx_artis explain 4242                      what is thread 4242, and why is it where it is?
  scx_artis explain 4242 --for 10             after a longer look
  scx_artis explain 4242 --replay FILE        as it was at the end of a recording
  scx_artis explain 4242 --json | jq .prediction";

/// Tell all about one task, in sentences
///
/// Its class and by which rule it has it, where it may run and runs, what made it leave RT CPUs,
/// what is predicted of it, how long it waited, and what could be better. A task is a thread: of
/// a process with several, ps -L shows the ids.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// Thread id of the task
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub pid: u64,

    /// From a recording of scx_artis record instead of the scheduler that runs
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    pub replay: Option<PathBuf>,

    /// How long to watch it, seconds
    #[arg(long = "for", value_name = "SECS", default_value = "1", value_parser = interval_secs)]
    pub seconds: f64,

    /// Print JSON: the figures, and the sentences
    #[arg(long)]
    pub json: bool,
}
