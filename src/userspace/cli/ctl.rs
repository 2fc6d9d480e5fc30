// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl`: the command line of the control of a running daemon.

use clap::{Args, Subcommand};

use crate::config::CpuSet;

const EXAMPLES: &str = "\
Examples:
  scx_artis ctl get                     everything: values, defaults, bounds
  scx_artis ctl get predict-c-us        one value, nothing else
  scx_artis ctl set predict-c-us 2000   takes effect at once
  scx_artis ctl rt-cpus 1-3             other RT CPUs, without a restart";

/// Look at a running scx_artis, and change what it does
///
/// NAME is the name of an option under "Policy constants" in scx_artis --help, without the
/// dashes in front; values have the same units and bounds as there. Only root may do this.
/// Changes last until the daemon ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ctl {
    #[allow(missing_docs)]
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// What to ask the running daemon for.
#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// Print the RT CPUs and all policy constants, or the value of one
    Get {
        /// Print this value only, as `set` would take it
        name: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change one policy constant
    Set {
        /// Which one: the option's name without the dashes in front
        name: String,
        /// Its value, in the option's unit
        #[arg(allow_negative_numbers = true)] // to be told what is wrong with them
        value: String,
    },
    /// Change which CPUs are kept clear for real-time tasks
    RtCpus {
        /// The new RT CPUs: a list (2-3,6) or a mask (0xc)
        #[arg(value_name = "CPUS")]
        cpus: CpuSet,
    },
}
