// SPDX-License-Identifier: GPL-2.0-only
//! The run loop: keeps a scheduler in charge until the user or the kernel ends
//! it, and answers whoever asks meanwhile.

use std::io::Write;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded, never, select, tick};
use nix::sched::{CpuSet as Affinity, sched_setaffinity};
use nix::unistd::Pid;

use super::exit_report::ExitReport;
use super::preempt::{self, Model, Switch};
use super::run_dir::{RUN_DIR, RunDir};
use super::scheduler::{Loaded, Scheduler, Setup};
use super::{Start, fit_or_fail, kernel, rt_cpus, say_findings, setup};
use crate::abi::PutBack;
use crate::cli::Opts;
use crate::config::CpuSet;
use crate::exit::Failure;
use crate::model::{Metrics, Reading};
use crate::outlets::line;
use crate::outlets::server::{self, Answer, Ask, Server};
use crate::outlets::table::{self, Head, Screen};

/// How long the kernel's ejection may go unnoticed.
const POLL: Duration = Duration::from_millis(100);

/// How one life of the scheduler ended.
enum End {
    ByUser,
    Restart,
    Ejected(ExitReport),
}

/// Runs until a signal or the kernel ends it.
///
/// # Errors
/// See [`Failure`].
pub fn run(opts: &Opts) -> Result<(), Failure> {
    let rt = rt_cpus(opts)?;
    // a wrong command line is to be told even where nothing else would work
    let first = setup(opts, rt, Start::First)?;
    let mut facts = fit_or_fail()?;
    let put_back = kernel::put_back(opts.put_back)?;
    scx_utils::try_set_rlimit_infinity();

    take_place(&first);
    be_prompt();
    let stop = stop_signals()?; // from here on a signal ends it in good order

    let run_dir = RunDir::lock(Path::new(RUN_DIR))?;
    let (knob, state) = (Path::new(preempt::KNOB), run_dir.saved_preempt());
    if let Some(model) = Switch::repair(knob, &state)? {
        log::warn!("a dead predecessor had changed the preemption model: it is {model} again");
    }
    let _switch = match opts.set_preempt {
        Some(choice) => Switch::to(choice, knob, &state)?,
        None => None,
    };
    facts.preemption = Model::now(); // the two steps above may have changed it
    say_findings(&facts);

    let server = Server::launch(Path::new(server::SOCKET))?;
    let mut session = Session {
        stop,
        requests: server.channels(),
        output: Output::new(opts),
        kernel: facts.release,
        put_back,
    };
    let mut next = first;
    loop {
        match session.live(&next)? {
            End::ByUser => return Ok(()),
            End::Restart => next = restart(opts, rt)?,
            End::Ejected(report) => {
                eprint!("{report}");
                return Err(Failure::Ejected(report.headline()));
            }
        }
    }
}

fn restart(opts: &Opts, rt: &CpuSet) -> Result<Setup, Failure> {
    eprintln!("scx_artis: a CPU came or went, starting again");
    let setup = setup(opts, rt, Start::AfterHotplug)?;
    take_place(&setup);
    Ok(setup)
}

/// What outlives a restart of the scheduler.
struct Session {
    stop: Receiver<()>,
    requests: (Sender<Answer>, Receiver<Ask>),
    output: Output,
    kernel: String,
    put_back: PutBack,
}

impl Session {
    /// One life of the scheduler.
    fn live(&mut self, setup: &Setup) -> Result<End> {
        let mut object = MaybeUninit::uninit();
        let loaded = Loaded::new(setup, self.put_back, &mut object)?;
        if !self.stop.is_empty() {
            return Ok(End::ByUser); // not in charge yet: nothing to give back
        }
        let mut scheduler = loaded.attach(setup)?;
        let head = self.head(setup, &scheduler);
        self.output.begin(&head);
        let ended_by_user = self.serve(&scheduler, &head)?;
        let (last, report) = scheduler.stop()?;
        if report.wants_restart() && !ended_by_user {
            return Ok(End::Restart);
        }
        if !report.is_ours() {
            return Ok(End::Ejected(report));
        }
        say_farewell(&last);
        Ok(End::ByUser)
    }

    fn head(&self, setup: &Setup, scheduler: &Scheduler<'_>) -> Head {
        Head {
            ops_name: scheduler.ops_name(),
            kernel: self.kernel.clone(),
            preemption: Model::now().to_string(),
            rt_cpus: setup.partition.rt.to_string(),
            nrt_cpus: setup.partition.nrt.to_string(),
        }
    }

    /// Answers and shows until the end. Returns whether the user asked for it.
    fn serve(&mut self, scheduler: &Scheduler<'_>, head: &Head) -> Result<bool> {
        let (answer, ask) = &self.requests;
        let tick = self.output.interval().map_or_else(never, tick);
        let mut prev = None;
        while !scheduler.has_ended() {
            select! {
                recv(self.stop) -> _ => return Ok(true),
                recv(ask) -> asked => {
                    let asked = asked.context("the statistics server is gone")?;
                    answer.send(match asked {
                        Ask::Top => Answer::Top(scheduler.read()?),
                        Ask::Task(tid) => Answer::Task(scheduler.read_task(tid)?),
                    })?;
                }
                recv(tick) -> _ => {
                    let now = scheduler.read()?;
                    self.output.show(head, &Metrics::between(prev.as_ref(), &now))?;
                    prev = Some(now);
                }
                default(POLL) => {}
            }
        }
        Ok(false)
    }
}

/// Where the daemon itself shows what happens.
enum Output {
    Nowhere,
    Lines(Duration),
    Table(Screen),
}

impl Output {
    fn new(opts: &Opts) -> Self {
        match (opts.output.stats, Screen::on_stdout()) {
            (Some(secs), _) => Self::Lines(Duration::from_secs_f64(secs)),
            (None, Some(screen)) => Self::Table(screen),
            (None, None) => Self::Nowhere,
        }
    }

    fn interval(&self) -> Option<Duration> {
        match self {
            Self::Nowhere => None,
            Self::Lines(interval) => Some(*interval),
            Self::Table(_) => Some(Duration::from_secs(1)),
        }
    }

    /// Says that the scheduler is in charge; the table says it itself.
    fn begin(&self, head: &Head) {
        if !matches!(self, Self::Table(_)) {
            eprintln!(
                "scx_artis: {} is in charge: RT CPUs {}, NRT CPUs {}, preemption {}",
                head.ops_name, head.rt_cpus, head.nrt_cpus, head.preemption
            );
        }
    }

    fn show(&mut self, head: &Head, metrics: &Metrics) -> Result<()> {
        match self {
            Self::Nowhere => Ok(()),
            Self::Lines(_) => writeln!(std::io::stdout(), "{}", line::render(metrics)),
            Self::Table(screen) => {
                let text = table::render(head, metrics, screen.style());
                screen.draw(&text)
            }
        }
        .context("stdout is gone")
    }
}

fn say_farewell(last: &Reading) {
    let totals = Metrics::between(None, last);
    eprintln!(
        "scx_artis: scheduler unloaded, the kernel's default took over; ran {:.1} s, evictions {}, \
         bodies on RT CPUs {}",
        totals.uptime_s, totals.evictions, totals.bodies_on_rt
    );
}

/// A channel that gets a message at SIGINT, SIGTERM or SIGHUP.
fn stop_signals() -> Result<Receiver<()>> {
    let (tell, told) = bounded(1);
    ctrlc::set_handler(move || {
        // full: the user is impatient, and has been heard
        let _ = tell.try_send(());
    })
    .context("installing the signal handler")?;
    Ok(told)
}

/// Says what is unwise about the setup, and keeps all threads of the daemon off
/// its RT CPUs. That ends with the daemon, so there is nothing to put back.
fn take_place(setup: &Setup) {
    for warning in &setup.warnings {
        log::warn!("{warning}");
    }
    let mut affinity = Affinity::new();
    for cpu in setup.partition.nrt.iter() {
        // fails beyond 1024 CPUs, where a partition has none
        let _ = affinity.set(cpu);
    }
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Err(error) = sched_setaffinity(Pid::from_raw(thread), &affinity) {
            log::warn!(
                "cannot keep the daemon's thread {thread} off the RT CPUs ({error}): does a cpuset \
                 hold it there?"
            );
        }
    }
}

/// The daemon is a task among those it schedules: it must get a CPU soon to
/// give the machine back, whatever the load. Threads made later inherit this.
fn be_prompt() {
    if let Err(error) = rustix::process::setpriority_process(None, -20) {
        log::warn!("cannot raise the daemon's own priority ({error}): it may stop late under load");
    }
}
