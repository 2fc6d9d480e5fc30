// SPDX-License-Identifier: GPL-2.0-only
//! The run loop: keeps a scheduler in charge until the user or the kernel ends
//! it, and answers whoever asks meanwhile.

use std::io::{self, IsTerminal, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, bounded, never, select, tick};

use super::exit_report::ExitReport;
use super::preempt::{self, Model, Switch};
use super::run_dir::{RUN_DIR, RunDir};
use super::scheduler::{Loaded, Scheduler};
use super::setup::{Seen, Setup, Start, Wanted};
use super::watcher::{self, Ticks, Watcher};
use super::{fit_or_fail, kernel, live, place, rt_cpus, say_findings, wanted};
use crate::abi::PutBack;
use crate::cli::Opts;
use crate::control::{self, Asked, Reply, Request};
use crate::exit::Failure;
use crate::feed::{self, Hub};
use crate::model::{Begin, Metrics, Reading};
use crate::outlets::line;
use crate::outlets::metrics::Exporter;
use crate::outlets::server::{self, Answer, Ask, Server};
use crate::outlets::top::{inside::Inside, terminal};

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
    // a wrong command line is to be told even where nothing else would work
    let metrics = opts.metrics.address()?;
    let first = Setup::new(opts, wanted(opts, rt_cpus(opts)?), Start::First)?;
    let mut facts = fit_or_fail()?;
    let put_back = kernel::put_back(opts.put_back)?;
    scx_utils::try_set_rlimit_infinity();

    place::take(&first);
    place::be_prompt();
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

    let hub = Arc::new(Hub::default());
    let server = Server::launch(Path::new(server::SOCKET), &hub)?;
    let owner = nix::unistd::geteuid().as_raw(); // root, or preflight would have said so
    let control = control::Server::launch(Path::new(control::SOCKET), owner)?;
    let group = opts.output.feed_group;
    run_dir.open_for(group)?;
    // before the feed: that closes the hub when it is dropped, which ends this
    let export = |address| Exporter::launch(address, group, opts.metrics.metrics_tasks, &hub);
    let _exporter = metrics.map(export).transpose()?;
    let _feed = feed::Server::launch(Path::new(feed::SOCKET), group, &hub)?;
    let mut session = Session {
        hub,
        stop,
        requests: server.channels(),
        control: control.asked(),
        output: Output::new(opts),
        kernel: facts.release,
        put_back,
    };
    let mut next = first;
    loop {
        match session.live(&mut next)? {
            End::ByUser => return Ok(()),
            End::Restart => next = restart(opts, next.wanted)?,
            End::Ejected(report) => {
                eprint!("{report}");
                return Err(Failure::Ejected(report.headline()));
            }
        }
    }
}

fn restart(opts: &Opts, wanted: Wanted) -> Result<Setup, Failure> {
    eprintln!("scx_artis: a CPU came or went, starting again");
    let setup = Setup::new(opts, wanted, Start::AfterHotplug)?;
    place::take(&setup);
    Ok(setup)
}

/// What outlives a restart of the scheduler.
struct Session {
    hub: Arc<Hub>,
    stop: Receiver<()>,
    requests: (Sender<Answer>, Receiver<Ask>),
    control: Receiver<Asked>,
    output: Output,
    kernel: String,
    put_back: PutBack,
}

impl Session {
    /// One life of the scheduler.
    fn live(&mut self, setup: &mut Setup) -> Result<End> {
        let mut object = MaybeUninit::uninit();
        let loaded = Loaded::new(setup, self.put_back, &mut object)?;
        if !self.stop.is_empty() {
            return Ok(End::ByUser); // not in charge yet: nothing to give back
        }
        let mut scheduler = loaded.attach(setup)?;
        let mut begin = self.begin(setup, &scheduler);
        self.output.begin(&begin, &self.hub)?;
        let ended_by_user = self.serve(&mut scheduler, setup, &mut begin)?;
        let (last, report) = scheduler.stop()?;
        if report.wants_restart() && !ended_by_user {
            return Ok(End::Restart);
        }
        self.output.end();
        if !report.is_ours() {
            return Ok(End::Ejected(report));
        }
        say_farewell(&last);
        Ok(End::ByUser)
    }

    fn begin(&self, setup: &Setup, scheduler: &Scheduler<'_>) -> Begin {
        watcher::begin(setup, scheduler, &self.kernel, Model::now().to_string())
    }

    /// Answers and shows until the end. Returns whether the user asked for it.
    fn serve(
        &mut self,
        scheduler: &mut Scheduler<'_>,
        setup: &mut Setup,
        begin: &mut Begin,
    ) -> Result<bool> {
        let mut watcher = Watcher::new(&self.hub);
        watcher.adapt(scheduler, begin);
        let ended = self.answer(scheduler, setup, begin, &mut watcher);
        watcher.end_interval(scheduler);
        ended
    }

    fn answer(
        &mut self,
        scheduler: &mut Scheduler<'_>,
        setup: &mut Setup,
        begin: &mut Begin,
        watcher: &mut Watcher,
    ) -> Result<bool> {
        let (answer, ask) = &self.requests;
        let (tick, left) = (self.output.ticks(), self.output.left());
        let mut prev = None;
        while !scheduler.has_ended() {
            let Ticks { changes, interval, poll } = watcher.ticks();
            select! {
                recv(self.stop) -> _ => return Ok(true),
                recv(left) -> left => {
                    left.context("the view is gone")?.context("the terminal is gone")?;
                    return Ok(true);
                }
                recv(ask) -> asked => {
                    let asked = asked.context("the statistics server is gone")?;
                    answer.send(match asked {
                        Ask::Top => Answer::Top(scheduler.read()?),
                        Ask::Task(tid) => Answer::Task(scheduler.read_task(tid)?),
                    })?;
                }
                recv(self.control) -> asked => {
                    let asked = asked.context("the control socket is gone")?;
                    let reply = change(&asked.request, setup, scheduler);
                    if let Reply::Done { text, .. } = &reply {
                        self.output.tell(text);
                    }
                    *begin = self.begin(setup, scheduler);
                    watcher.tell_change(scheduler, begin);
                    asked.answer(reply);
                }
                recv(changes) -> _ => watcher.adapt(scheduler, begin),
                recv(interval) -> _ => watcher.end_interval(scheduler),
                recv(poll) -> _ => watcher.poll(scheduler),
                recv(tick) -> _ => {
                    let now = scheduler.read()?;
                    self.output.show(&Metrics::between(prev.as_ref(), &now))?;
                    prev = Some(now);
                }
                default(POLL) => {}
            }
        }
        Ok(false)
    }
}

/// Does what `scx_artis ctl` asks for; the daemon itself leaves what are RT CPUs now.
fn change(request: &Request, setup: &mut Setup, scheduler: &mut Scheduler<'_>) -> Reply {
    let reply = live::answer(request, setup, scheduler, Seen::now);
    if matches!(request, Request::RtCpus { .. }) {
        place::stay_on_nrt(setup);
    }
    reply.unwrap_or_else(Reply::from)
}

/// Where the daemon itself shows what happens.
enum Output {
    Nowhere,
    Lines(Duration),
    /// The view, once there is something to see.
    View(Option<Inside>),
}

impl Output {
    fn new(opts: &Opts) -> Self {
        match opts.output.stats {
            Some(secs) => Self::Lines(Duration::from_secs_f64(secs)),
            None if terminal::is_fit() => Self::View(None),
            None if io::stdout().is_terminal() => Self::Lines(Duration::from_secs(1)),
            None => Self::Nowhere,
        }
    }

    /// When the run loop is to call [`Self::show`].
    fn ticks(&self) -> Receiver<Instant> {
        match self {
            Self::Lines(interval) => tick(*interval),
            Self::Nowhere | Self::View(_) => never(),
        }
    }

    /// Gets a message when the user has left the view.
    fn left(&self) -> Receiver<io::Result<()>> {
        match self {
            Self::View(Some(view)) => view.left(),
            _ => never(),
        }
    }

    /// Says that the scheduler is in charge; the view says it itself.
    fn begin(&mut self, begin: &Begin, hub: &Arc<Hub>) -> Result<()> {
        match self {
            Self::View(Some(_)) => {} // a restart
            Self::View(view) => *view = Some(Inside::start(hub)?),
            Self::Nowhere | Self::Lines(_) => eprintln!(
                "scx_artis: {} is in charge: RT CPUs {}, NRT CPUs {}, preemption {}",
                begin.ops_name, begin.rt_cpus, begin.nrt_cpus, begin.preemption
            ),
        }
        Ok(())
    }

    /// Says that something has changed; the view shows it itself.
    fn tell(&self, text: &str) {
        if !matches!(self, Self::View(_)) {
            eprintln!("scx_artis: {text}, by ctl");
        }
    }

    fn show(&self, metrics: &Metrics) -> Result<()> {
        writeln!(io::stdout(), "{}", line::render(metrics)).context("stdout is gone")
    }

    /// Gives the terminal back: what is said from now on is for the shell's screen.
    fn end(&mut self) {
        if let Self::View(view) = self {
            *view = None;
        }
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
