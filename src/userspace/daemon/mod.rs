// SPDX-License-Identifier: GPL-2.0-only
//! The daemon: from options to a scheduler in charge, and back.

pub(crate) mod classes;
mod exit_report;
mod kernel;
pub mod kernel_threads;
mod live;
pub mod log;
mod notify;
mod output;
mod place;
pub(crate) mod plain;
pub mod preempt;
pub mod preflight;
pub mod privileges;
mod run;
mod run_dir;
mod sched;
mod scheduler;
mod setup;
pub mod signals;
mod starvation;
mod task;
mod watcher;

use std::io::Write;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};

use crate::cli::{Command, Opts};
use crate::config::{CallTable, CpuSet};
use crate::control;
use crate::exit::Failure;
use crate::feed::record;
use crate::outlets::{describe, explain, perfetto, report, server, top};
pub use classes::adoption::Wanted as AdoptionWanted;
use classes::adoption::{self, Adoption};
use classes::{Classes, Source};
use preempt::Switch;
use preflight::{Facts, Finding, Severity};
use run_dir::{RUN_DIR, RunDir};
use scheduler::Loaded;
use setup::{Setup, Wanted};

/// Does what the command line asks for.
///
/// # Errors
/// See [`Failure`]: each variant is one exit code.
pub fn execute(opts: &Opts) -> Result<(), Failure> {
    let mut stdout = std::io::stdout();
    if let Some(command) = &opts.command {
        match command {
            Command::Ctl(ctl) => {
                control::execute(&ctl.command, Path::new(control::SOCKET), &mut stdout)?;
            }
            Command::Explain(args) => explain::execute(args, &mut stdout)?,
            Command::Export(args) => perfetto::execute(args, &mut stdout)?,
            Command::Report(args) => report::execute(args, &mut stdout)?,
            Command::Record(record) => record::execute(record)?,
            Command::Restore => restore()?,
            Command::Run(run) => control::run(run, Path::new(control::SOCKET))?,
            Command::Top(top) => top::command::execute(top)?,
        }
    } else if opts.output.help_stats {
        let text = describe::help().context("describing the statistics")?;
        write!(stdout, "{text}").context("writing to stdout")?;
    } else if opts.print_calls {
        let table = CallTable::new(opts.strict, &opts.calls)?;
        write!(stdout, "{table}").context("writing to stdout")?;
    } else if let Some(secs) = opts.output.monitor {
        server::monitor(Duration::from_secs_f64(secs))?;
    } else if opts.restore {
        restore()?;
    } else if opts.check {
        check(opts)?;
    } else {
        run::run(opts)?;
    }
    Ok(())
}

/// `--restore` and `restore`: puts back what a dead daemon left changed.
fn restore() -> Result<(), Failure> {
    require_root()?;
    let dir = RunDir::lock(Path::new(RUN_DIR))?;
    let model = Switch::repair(Path::new(preempt::KNOB), &dir.saved_preempt());
    let threads = kernel_threads::repair(&dir.kernel_threads());
    // whatever became of these
    let tasks = adoption::repair(Path::new(adoption::PINNED))?;
    let (model, threads) = (model?, threads?);
    if let Some(model) = &model {
        eprintln!("scx_artis: preemption model is {model} again");
    }
    if threads > 0 {
        eprintln!("scx_artis: {threads} kernel threads are normal ones again");
    }
    if tasks.restored > 0 {
        eprintln!("scx_artis: {} adopted or confined tasks are as they were", tasks.restored);
    }
    if tasks.all()? == 0 && threads == 0 && model.is_none() {
        eprintln!("scx_artis: nothing was left changed");
    }
    Ok(())
}

fn require_root() -> Result<(), Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(Failure::Unfit("this needs root; start it with sudo".to_owned()))
}

/// `--check`: every finding, and a load of the BPF programs without attaching.
fn check(opts: &Opts) -> Result<(), Failure> {
    let setup = opts.rt_cpus.as_ref();
    let setup = setup.map(|rt| Setup::new(opts, wanted(opts, rt))).transpose()?;
    let rules = Source::new(opts.config.clone());
    let checked = Classes::new(rules.clone(), Adoption::default())?;
    let mut findings = preflight::judge(&Facts::gather());
    if checked.has_rules() {
        let text = format!("{} in {}", checked.count(), rules.name());
        findings.push(Finding::new(Severity::Ok, "rules", text));
        let warn = |text| Finding::new(Severity::Warn, "rules", text);
        findings.extend(checked.doubts().into_iter().map(warn));
    }
    if let Some(setup) = &setup {
        findings.push(Finding::new(
            Severity::Ok,
            "partition",
            format!("RT CPUs {}, NRT CPUs {}", setup.partition.rt, setup.partition.nrt),
        ));
        let warn = |text: &String| Finding::new(Severity::Warn, "partition", text.clone());
        findings.extend(setup.warnings.iter().map(warn));
    }
    if let (Some(setup), None) = (&setup, preflight::errors(&findings)) {
        findings.push(try_load(setup, kernel::puts_back_lazily(opts.put_back)));
    }
    let mut stdout = std::io::stdout();
    for finding in &findings {
        writeln!(stdout, "{finding}").context("writing to stdout")?;
    }
    match preflight::errors(&findings) {
        Some(_) => Err(Failure::Unfit("this machine is not fit, see the errors above".to_owned())),
        None => Ok(()),
    }
}

fn try_load(setup: &Setup, put_back_lazy: bool) -> Finding {
    let subject = "load";
    scx_utils::try_set_rlimit_infinity();
    match Loaded::new(setup, put_back_lazy, &mut MaybeUninit::uninit()) {
        Ok(_) => {
            Finding::new(Severity::Ok, subject, "the kernel's verifier takes the BPF programs")
        }
        Err(error) => Finding::new(
            Severity::Error,
            subject,
            format!(
                "this kernel does not take the BPF programs (--verbose shows its log): {error:#}"
            ),
        ),
    }
}

/// What the options ask for.
fn wanted(opts: &Opts, rt: &CpuSet) -> Wanted {
    Wanted { rt: rt.clone(), values: opts.policy.clone(), seq: 0 }
}

/// The facts of this machine.
///
/// # Errors
/// When preflight finds that the scheduler cannot run here.
fn fit_or_fail() -> Result<Facts, Failure> {
    let facts = Facts::gather();
    match preflight::errors(&preflight::judge(&facts)) {
        Some(errors) => Err(Failure::Unfit(errors)),
        None => Ok(facts),
    }
}

/// Says what preflight thinks of `facts`.
fn say_findings(facts: &Facts) {
    for finding in preflight::judge(facts) {
        match finding.severity {
            Severity::Warn => ::log::warn!("{}: {}", finding.subject, finding.text),
            _ => ::log::info!("{}: {}", finding.subject, finding.text),
        }
    }
}

/// The RT CPUs, which clap requires where they are needed.
fn rt_cpus(opts: &Opts) -> Result<&CpuSet, Failure> {
    Ok(opts.rt_cpus.as_ref().ok_or_else(|| anyhow!("--rt-cpus is missing"))?)
}
