// SPDX-License-Identifier: GPL-2.0-only
//! The command line. Only what clap can say; meaning is given in [`crate::config`].

mod adoption;
mod ctl;
mod explain;
mod export;
mod metrics;
mod record;
mod report;
mod run;
mod top;

use std::path::PathBuf;
use std::sync::LazyLock;

pub use adoption::AdoptionOpts;
pub use ctl::{Ctl, CtlCommand, RuleCommand};
pub use explain::Explain;
pub use export::Export;
pub use metrics::MetricsOpts;
pub use record::Record;
pub use report::Report;
pub use run::Run;
pub use top::Top;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};
use nix::unistd::Group;
use scx_utils::build_id;
use scx_utils::libbpf_clap_opts::LibbpfOpts;

use crate::config::{CpuSet, Override, Policy};
use crate::exit::EXIT_CODES_HELP;

static VERSION: LazyLock<String> =
    LazyLock::new(|| build_id::full_version(env!("CARGO_PKG_VERSION")));

const EXAMPLES: &str = "\
Examples:
  scx_artis --check --rt-cpus 2-3      would it work here?
  scx_artis --rt-cpus 2-3              run, with a live view on a terminal
  scx_artis --rt-cpus 0xc --stats 5    run, with a line every five seconds
  scx_artis --monitor 1                watch a running one from elsewhere
  scx_artis ctl get                    what can be changed while it runs";

/// CPUs for real-time tasks that are kept free of others' kernel work, and still compute for them.
///
/// The RT CPUs are kept clear of kernel work by anyone but hard real-time
/// tasks (SCHED_FIFO and SCHED_RR tasks bound to them). Every other task
/// may compute there; when it enters the kernel it is moved to another CPU
/// before the call's body runs. Ctrl-C gives the machine back to the kernel's
/// own scheduler.
#[derive(Debug, Parser)]
#[command(name = "scx_artis", version = VERSION.as_str(), after_help = EXIT_CODES_HELP)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES_HELP}"))]
// a command stands alone; without one the scheduler is started
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
// one of these says what to do; --check takes --rt-cpus, too
#[command(group = ArgGroup::new("question").args(["monitor", "restore", "help_stats", "print_calls"]))]
pub struct Opts {
    #[allow(missing_docs)]
    #[command(subcommand)]
    pub command: Option<Command>,

    /// CPUs to keep clear for real-time tasks: a list (2-3,6) or a mask (0xc)
    #[arg(long, value_name = "CPUS", required_unless_present_any = ["question", "check"])]
    #[arg(conflicts_with_all = ["monitor", "restore", "help_stats", "print_calls"])]
    pub rt_cpus: Option<CpuSet>,

    /// File of rules about which task is of which class, read again at SIGHUP
    /// [default: /etc/scx_artis/config.toml if that exists]
    #[arg(long, value_name = "FILE", conflicts_with = "question")]
    pub config: Option<PathBuf>,

    /// Look whether this machine is fit, change nothing, and exit (0 or 3)
    #[arg(long, conflicts_with = "question")]
    pub check: bool,

    /// Every system call endangers, whatever the table of calls says
    #[arg(long)]
    pub strict: bool,

    /// Class of a system call: harmless, sleeping or endangering (repeatable)
    #[arg(long = "call", value_name = "NAME=CLASS", conflicts_with = "strict")]
    pub calls: Vec<Override>,

    /// Print the classes of system calls and exit
    #[arg(long)]
    pub print_calls: bool,

    /// Switch the kernel's preemption model while running; the old one is put back at the end
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["question", "check"])]
    pub set_preempt: Option<PreemptChoice>,

    /// How tasks leave from beneath a real-time task that took their CPU
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub put_back: PutBackChoice,

    /// How long a runnable task may wait before the kernel ejects the scheduler, ms
    /// [default: 10000 where the kernel's ext_server helps such tasks, else 30000]
    #[arg(long, value_name = "MS", env = "SCX_TIMEOUT_MS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1_000..=30_000))]
    pub watchdog_ms: Option<u32>,

    /// Put back what a dead scx_artis left changed, and exit
    #[arg(long)]
    pub restore: bool,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub adoption: AdoptionOpts,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub policy: Policy,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub output: OutputOpts,

    #[allow(missing_docs)]
    #[command(flatten)]
    pub metrics: MetricsOpts,

    /// Size of the kernel's debug dump when it ejects the scheduler, bytes; 0: its default
    #[arg(long, value_name = "BYTES", default_value_t = 0, help_heading = "Diagnosis")]
    pub exit_dump_len: u32,

    /// Say more, including what libbpf has to say
    #[arg(short, long, help_heading = "Diagnosis")]
    pub verbose: bool,

    #[allow(missing_docs)]
    #[command(flatten, next_help_heading = "libbpf")]
    pub libbpf: LibbpfOpts,
}

impl Opts {
    /// Does it ask for the daemon, rather than for something that ends by itself?
    pub fn starts_scheduler(&self) -> bool {
        let asks = self.check || self.restore || self.print_calls || self.output.help_stats;
        self.command.is_none() && !asks && self.output.monitor.is_none()
    }
}

/// What to do instead of starting the scheduler.
#[derive(Debug, Subcommand)]
pub enum Command {
    #[allow(missing_docs)]
    Ctl(Ctl),
    #[allow(missing_docs)]
    Run(Run),
    #[allow(missing_docs)]
    Explain(Explain),
    #[allow(missing_docs)]
    Export(Export),
    #[allow(missing_docs)]
    Record(Record),
    #[allow(missing_docs)]
    Report(Report),
    /// Put back what a dead scx_artis left changed: policies of tasks, the preemption model
    Restore,
    #[allow(missing_docs)]
    Top(Top),
}

/// What to show, and where.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputOpts {
    /// Print a line every so many seconds, no live view
    #[arg(long, value_name = "SECS", value_parser = interval_secs, conflicts_with_all = ["question", "check"])]
    pub stats: Option<f64>,

    /// Print a line every so many seconds about an scx_artis that runs already
    #[arg(long, value_name = "SECS", value_parser = interval_secs)]
    pub monitor: Option<f64>,

    /// Group whose members may watch (scx_artis top, record, explain): a name or a number; 0 is
    /// root's
    #[arg(long, value_name = "GROUP", default_value = "0", value_parser = group_id)]
    pub feed_group: u32,

    /// Room for records on their way to those who watch, KiB: a power of two
    #[arg(long, value_name = "KIB", default_value_t = 4096, value_parser = ring_kb)]
    pub ring_kb: u32,

    /// Describe the statistics and exit
    #[arg(long)]
    pub help_stats: bool,
}

/// Preemption models that move a task before the body of its call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PreemptChoice {
    /// Preempt wherever it is possible.
    Full,
    /// As full for real-time tasks and kicks, later for the rest.
    Lazy,
}

/// When an ext task beneath a real-time one is put back into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PutBackChoice {
    /// Lazy, but eager with nohz_full=, which may stop the tick
    Auto,
    /// At the context switch, at the cost of the real-time task
    Eager,
    /// At the first tick at which the real-time task still runs
    Lazy,
}

/// Seconds between two outputs: 0.1 to a day.
fn interval_secs(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(secs) if (0.1..=86_400.0).contains(&secs) => Ok(secs),
        Ok(secs) => Err(format!("{secs} seconds is out of range; between 0.1 and 86400, please")),
        Err(_) => Err("not a number of seconds".to_owned()),
    }
}

/// The id of a group of this machine.
fn group_id(group: &str) -> Result<u32, String> {
    if let Ok(gid) = group.parse() {
        return Ok(gid);
    }
    match Group::from_name(group) {
        Ok(Some(group)) => Ok(group.gid.as_raw()),
        Ok(None) => Err("this machine has no such group: groupadd makes one".to_owned()),
        Err(error) => Err(format!("looking for that group: {error}")),
    }
}

/// A size that the kernel's ring buffer can have, KiB.
fn ring_kb(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(kb) if (64..=65_536).contains(&kb) && kb.is_power_of_two() => Ok(kb),
        Ok(_) => Err("the ring buffer can have 64, 128, 256, ... 65536 KiB".to_owned()),
        Err(_) => Err("not a number of KiB".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn declarations_are_sound() {
        Opts::command().debug_assert();
    }
}
