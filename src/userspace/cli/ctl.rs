// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl`: the command line of the control of a running daemon.

use clap::{Args, Subcommand, ValueEnum};

use crate::config::CpuSet;
use crate::control::Class;

const EXAMPLES: &str = "\
Examples:
  scx_artis ctl get                     everything: values, defaults, bounds
  scx_artis ctl get predict-c-us        one value, nothing else
  scx_artis ctl set predict-c-us 2000   takes effect at once
  scx_artis ctl rt-cpus 1-3             other RT CPUs, without a restart
  scx_artis ctl rule add comm=jackd class=rt1 priority=50";

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
    /// Change the class of a task, and of the children that it has from then on
    Class {
        /// Its thread id
        #[arg(value_parser = clap::value_parser!(i32).range(1..))]
        pid: i32,
        #[allow(missing_docs)]
        #[command(flatten)]
        class: ClassOpts,
    },
    /// Change which CPUs are kept clear for real-time tasks
    RtCpus {
        /// The new RT CPUs: a list (2-3,6) or a mask (0xc)
        #[arg(value_name = "CPUS")]
        cpus: CpuSet,
    },
    /// Look at and change the rules about which task is of which class
    #[command(subcommand)]
    Rule(RuleCommand),
}

/// What to do with the rules.
#[derive(Debug, Subcommand)]
pub enum RuleCommand {
    /// Print the rules in their order: the first that is about a task decides
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Add a rule, until the daemon ends or the file is read again
    Add {
        /// Put it before the rule with this number, not after all
        #[arg(long, value_name = "NR")]
        before: Option<usize>,
        /// KEY=VALUE words, like comm=jackd class=rt1 priority=50, or one word that is a TOML
        /// table in braces; the keys are those of the file (docs/rules.md)
        #[arg(required = true, value_name = "KEY=VALUE")]
        rule: Vec<String>,
    },
    /// Remove a rule; the file stays as it is
    Remove {
        /// Its number in the list
        nr: usize,
    },
    /// Read the file again, as SIGHUP does; a wrong one changes nothing
    Reload,
}

/// What a task is to be.
#[derive(Clone, Copy, Debug, Args)]
pub struct ClassOpts {
    /// rt1: firm real time, before all other tasks but hard real-time ones; nrt: everything else
    #[arg(long, value_name = "CLASS")]
    pub class: ClassName,
    /// Of rt1: the higher the sooner
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u32).range(1..=98))]
    #[arg(required_if_eq("class", "rt1"))]
    pub priority: Option<u32>,
    /// Of rt1: take turns with others of the same priority (--rt1-rr-ms)
    #[arg(long)]
    pub rr: bool,
}

/// The words for a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ClassName {
    /// Firm real time
    Rt1,
    /// Everything else
    Nrt,
}

impl ClassOpts {
    /// The class that the options say.
    pub fn class(self) -> Class {
        match (self.class, self.priority) {
            (ClassName::Rt1, Some(priority)) => Class::Rt1 { priority, round_robin: self.rr },
            _ => Class::Nrt,
        }
    }
}
