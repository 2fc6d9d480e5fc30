// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis record`: the command line of a recording.

use std::path::PathBuf;

use clap::Args;

use super::interval_secs;

const EXAMPLES: &str = "\
Examples:
  scx_artis record run.artis                    until Ctrl-C
  scx_artis record run.artis --for 60 --events  a minute, with each eviction and each move
  scx_artis top --replay run.artis              look at it";

/// Write what a running scx_artis does to a file, to look at later
///
/// The file has the totals of each task and CPU, once a second. It is of no use to overwrite
/// one: FILE must not exist. If this is killed, what is in FILE up to the last second can be
/// read.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct Record {
    /// The file to make
    pub file: PathBuf,

    /// End after so many seconds; without this Ctrl-C does
    #[arg(long = "for", value_name = "SECS", value_parser = interval_secs)]
    pub secs: Option<f64>,

    /// Record each eviction and each move to another CPU, too
    #[arg(long)]
    pub events: bool,

    /// Record each run of a task on a CPU, too
    #[arg(long)]
    pub runs: bool,
}
