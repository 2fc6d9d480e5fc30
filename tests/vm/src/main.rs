// SPDX-License-Identifier: GPL-2.0-only
//! The program that runs inside the guest, as root.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use artis_vm::cpus::Cpus;
use artis_vm::observe::Observer;
use artis_vm::progress::Board;
use artis_vm::scenarios::{self, Ctx, Outcome, Scenario};
use artis_vm::worker::{self, Spec};
use artis_vm::{
    daemon, guest, locks, moves, periodic, programs, serve, stuck, switch, times, verifier,
};
use clap::{Args, Parser, Subcommand};

/// In-VM tests of scx_artis: an observer that is not the scheduler, and scenarios.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Cmd,
}

#[derive(Args)]
struct Machine {
    /// The RT CPUs
    #[arg(long, default_value = "2-3")]
    rt_cpus: Cpus,
    /// The loader under test
    #[arg(long, default_value = "scx_artis")]
    program: PathBuf,
}

#[derive(Subcommand)]
enum Cmd {
    /// Where do the bodies of calls and user faults run? Prints JSON.
    Observe {
        #[arg(long, default_value = "2-3")]
        rt_cpus: Cpus,
        /// For so long
        #[arg(long, default_value_t = 3.0)]
        secs: f64,
        /// Every call endangers
        #[arg(long)]
        strict: bool,
    },
    /// Which locks do RT CPUs wait for? For each name on stdin it watches, leaves a file of
    /// that name, and says so; a line of words separated by tabs for each lock and caller:
    /// what, lock, who, callers, times, sum, median, 99 %, maximum (ns)
    Locks {
        #[arg(long, default_value = "2-3")]
        rt_cpus: Cpus,
        /// For so long
        #[arg(long, default_value_t = 3.0)]
        secs: f64,
        /// Also who holds the locks of RT CPUs, and for how long
        #[arg(long)]
        holds: bool,
        /// Where the files go
        #[arg(long)]
        into: PathBuf,
    },
    /// Who comes to RT CPUs, for how long, and how do they leave? Asked as `locks` is
    Moves {
        #[arg(long, default_value = "2-3")]
        rt_cpus: Cpus,
        /// For so long
        #[arg(long, default_value_t = 3.0)]
        secs: f64,
        /// Also leave trace.csv, what lollobrigida's tasks did, for replay
        #[arg(long)]
        trace: bool,
        /// Where the files go
        #[arg(long)]
        into: PathBuf,
    },
    /// How long are the runs of the scheduler's programs? Asked as `locks` is
    Programs {
        /// For so long
        #[arg(long, default_value_t = 3.0)]
        secs: f64,
        /// Where the files go
        #[arg(long)]
        into: PathBuf,
    },
    /// Runs one scenario: 0 passed, 1 failed, 75 without a verdict, 77 cannot run here
    Scenario {
        name: String,
        #[command(flatten)]
        machine: Machine,
    },
    /// Runs the scenarios whose names come on stdin, a line each, and tells how each ended
    #[command(hide = true)]
    Serve,
    /// Lists the scenarios
    List,
    /// Prints the time from exec to "enabled", in seconds
    EnabledTime {
        #[command(flatten)]
        machine: Machine,
        /// So often
        #[arg(long, default_value_t = 3)]
        times: u32,
    },
    /// Prints what the statistics socket of a running scx_artis says, as JSON
    Stats,
    /// Prints the sizes of the scheduler's programs as JSON
    Verifier {
        #[command(flatten)]
        machine: Machine,
    },
    /// Two threads on one CPU that take turns with a mutex: from its release to the other
    /// thread. Prints a line of words separated by tabs
    Switch {
        #[command(flatten)]
        spec: switch::Spec,
    },
    /// A periodic task that makes no endangering call: how late it wakes up, as cyclictest's
    /// histogram, and its share of time on RT CPUs
    Periodic {
        #[command(flatten)]
        spec: periodic::Spec,
    },
    /// Becomes that program, and while it runs each system call enters a hook that does nothing
    Hooked {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<std::ffi::OsString>,
    },
    /// Threads that do nothing but wake up once a second, until a signal ends them
    Crowd { threads: u32 },
    /// One task of a known kind
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        board: PathBuf,
        #[arg(long)]
        slot: usize,
        #[command(flatten)]
        spec: Spec,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("artis-guest: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Cmd) -> Result<ExitCode> {
    match command {
        Cmd::Observe { rt_cpus, secs, strict } => {
            let report = Observer::attach(rt_cpus, strict)?.watch(secs)?;
            println!("{}", serde_json::to_string_pretty(&report)?);
        }
        Cmd::Locks { rt_cpus, secs, holds, into } => {
            let mut observer = locks::Observer::attach(rt_cpus, holds)?;
            times::serve(&into, || observer.report(secs))?;
        }
        Cmd::Moves { rt_cpus, secs, trace, into } => {
            let mut observer = moves::Observer::attach(rt_cpus, trace)?;
            times::serve(&into, || {
                let report = observer.report(secs)?;
                if trace {
                    std::fs::write(into.join("trace.csv"), observer.trace()?)?;
                }
                Ok(report)
            })?;
        }
        Cmd::Programs { secs, into } => {
            let mut observer = programs::Observer::attach()?;
            times::serve(&into, || observer.report(secs))?;
        }
        Cmd::Hooked { command } => match artis_vm::hooked::exec(&command)? {},
        Cmd::Scenario { name, machine } => return scenario(&name, machine),
        Cmd::Serve => serve::serve()?,
        Cmd::List => {
            for s in scenarios::ALL {
                println!("{:<22} {}", s.name, s.what);
            }
        }
        Cmd::EnabledTime { machine, times } => {
            let ctx = Ctx::new(machine.rt_cpus, machine.program)?;
            for _ in 0..times {
                let daemon = ctx.load(&[])?;
                println!("{:.3}", daemon.enabled_after().as_secs_f64());
                daemon.finish()?;
            }
        }
        Cmd::Stats => println!("{:#}", daemon::Stats::connect()?.read()?),
        Cmd::Verifier { machine } => {
            let known = verifier::ids();
            let daemon = Ctx::new(machine.rt_cpus, machine.program)?.load(&[])?;
            println!("{}", serde_json::to_string_pretty(&verifier::programs_besides(&known)?)?);
            daemon.finish()?;
        }
        Cmd::Switch { spec } => println!("{}", switch::run(&spec)?),
        Cmd::Periodic { spec } => println!("{}", periodic::run(&spec)?),
        Cmd::Crowd { threads } => crowd(threads)?,
        Cmd::Worker { board, slot, spec } => worker::run(&spec, &Board::open(&board)?, slot)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// So many threads, their wake-ups spread over the second.
fn crowd(threads: u32) -> Result<()> {
    for i in 0..threads {
        let offset = Duration::from_secs(1) * i / threads.max(1);
        let sleeper = std::thread::Builder::new().stack_size(64 * 1024);
        sleeper.name(format!("crowd.{i}")).spawn(move || {
            std::thread::sleep(offset);
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        })?;
    }
    loop {
        std::thread::park();
    }
}

fn scenario(name: &str, machine: Machine) -> Result<ExitCode> {
    let s = scenarios::find(name).with_context(|| format!("no scenario '{name}' (see list)"))?;
    let kernel = guest::line("/proc/sys/kernel/osrelease")?;
    println!("{} on {kernel}: {}", s.name, s.what);
    let ctx = Ctx::new(machine.rt_cpus, machine.program)?;
    // later than what says itself what it waits for in vain
    stuck::tell_after(Duration::from_secs(2 * u64::from(s.secs)).max(Scenario::LIMIT_MIN * 5 / 6))?;
    Ok(match scenarios::run(s, &ctx)? {
        Outcome::Passed => {
            println!("{}: passed", s.name);
            ExitCode::SUCCESS
        }
        Outcome::Skipped(why) => {
            println!("{}: skipped: {why}", s.name);
            ExitCode::from(Outcome::SKIPPED)
        }
    })
}
