// SPDX-License-Identifier: GPL-2.0-only
//! The run loop: keeps a scheduler in charge until the user or the kernel ends
//! it, and answers whoever asks meanwhile.

use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Receiver, Sender, never, select_biased};
use nix::time::{ClockId, clock_gettime};

use super::classes::adoption::{Adoption, PINNED};
use super::classes::{Classes, Source};
use super::kernel_threads::{self, KernelThreads};
use super::log::say;
use super::notify::Manager;
use super::output::{Output, say_farewell};
use super::preempt::{self, Model, Switch};
use super::privileges;
use super::run_dir::{RUN_DIR, RunDir};
use super::scheduler::{Loaded, Scheduler};
use super::setup::{Seen, Setup};
use super::signals::{self, Told};
use super::starvation::Relief;
use super::watcher::{self, Ticks, Watcher};
use super::{fit_or_fail, kernel, live, place, rt_cpus, say_findings, wanted};
use crate::cli::Opts;
use crate::config::ConfigError;
use crate::control::{self, Asked, Reply, Request};
use crate::exit::Failure;
use crate::feed::{self, Hub};
use crate::model::{Begin, Metrics};
use crate::outlets::metrics::Exporter;
use crate::outlets::server::{self, Answer, Ask, Server};

/// How long the kernel's ejection may go unnoticed.
const POLL: Duration = Duration::from_millis(100);
/// After news of tasks no more are taken for so many times as long as they took of a CPU: a storm of
/// them has a tenth of an NRT CPU. Without it 78 % were seen (scenario `siege`).
const NEWS_REST: u32 = 9;

/// Runs until a signal or the kernel ends it.
///
/// # Errors
/// See [`Failure`].
pub fn run(opts: &Opts) -> Result<(), Failure> {
    // a wrong command line is to be told even where nothing else would work
    let metrics = opts.metrics.address()?;
    let mut setup = Setup::new(opts, wanted(opts, rt_cpus(opts)?))?;
    let adoption = Adoption::new(opts.adoption.wanted());
    let classes = Classes::new(Source::new(opts.config.clone()), adoption)?;
    classes.doubts().iter().for_each(|doubt| log::warn!("{doubt}"));
    let mut facts = fit_or_fail()?;
    let put_back_lazy = kernel::puts_back_lazily(opts.put_back);

    place::take(&setup);
    place::be_prompt();
    let relief = Relief::begin()?;
    let told = signals::listen()?; // from here on a signal ends it in good order

    let run_dir = RunDir::lock(Path::new(RUN_DIR))?;
    let mut classes = classes; // from here on its records go before the lock does
    let (knob, state) = (Path::new(preempt::KNOB), run_dir.saved_preempt());
    put_back(knob, &run_dir, || classes.remember_in(Path::new(PINNED)))?;
    let _switch = match opts.set_preempt {
        Some(choice) => Switch::to(choice, knob, &state)?,
        None => None,
    };
    facts.preemption = Model::now(); // the switch above may have changed it
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
    let _feed = feed::Server::launch(Path::new(feed::SOCKET), owner, group, &hub)?;
    let mut session = Session {
        hub,
        told,
        classes,
        requests: server.channels(),
        control: control.asked(),
        output: Output::new(opts),
        manager: Manager::new(),
        kernel: facts.release,
        put_back_lazy,
        relief,
        kernel_threads: KernelThreads::new(run_dir.kernel_threads()),
    };
    let ended = session.live(&mut setup);
    session.manager.stopping();
    // here whatever the end was; twice does no harm
    let given_back = session.classes.end();
    ended.and(given_back.map_err(Failure::from))
}

/// Puts back what a dead predecessor has left changed: each of it is tried, so that a damaged file keeps
/// no task from it. `tasks` is to put back tasks.
///
/// # Errors
/// When something could not be put back.
fn put_back(
    knob: &Path,
    run_dir: &RunDir,
    tasks: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let model = Switch::repair(knob, &run_dir.saved_preempt());
    let lowered = kernel_threads::repair(&run_dir.kernel_threads());
    // whatever became of these
    tasks()?;
    let (model, lowered) = (model?, lowered?);
    if let Some(model) = model {
        log::warn!("a dead predecessor had changed the preemption model: it is {model} again");
    }
    if lowered > 0 {
        log::warn!(
            "a dead predecessor had made {lowered} kernel threads SCHED_FIFO: they are normal ones again"
        );
    }
    Ok(())
}

/// All that the daemon has besides the scheduler.
struct Session {
    hub: Arc<Hub>,
    told: Told,
    classes: Classes,
    requests: (Sender<Answer>, Receiver<Ask>),
    control: Receiver<Asked>,
    output: Output,
    manager: Manager,
    kernel: String,
    put_back_lazy: bool,
    relief: Relief,
    kernel_threads: KernelThreads,
}

impl Session {
    /// The scheduler from its load until the user or the kernel ends it.
    fn live(&mut self, setup: &mut Setup) -> Result<(), Failure> {
        let mut object = MaybeUninit::uninit();
        let loaded = Loaded::new(setup, self.put_back_lazy, &mut object)?;
        if !self.told.stop.is_empty() {
            return Ok(()); // not in charge yet: nothing to give back
        }
        let mut scheduler = loaded.attach(setup)?;
        self.classes.begin(setup, &mut scheduler).context("applying the rules")?;
        let mut begin = self.begin(setup, &scheduler);
        self.output.begin(&begin, &self.hub)?;
        if let Err(error) = privileges::filter() {
            log::warn!("the system calls of this daemon are not limited: {error:#}");
        }
        place::reserve_heap();
        self.manager.ready(&status(&begin));
        let served = self.serve(&mut scheduler, setup, &mut begin);
        self.manager.stopping();
        // as long as the scheduler still knows how urgent they are
        let given_back = if scheduler.has_ended() { Ok(()) } else { self.classes.give_back() };
        let (last, report) = scheduler.stop()?;
        self.kernel_threads.end();
        // before the terminal is given back, which may take its time
        let given_back = given_back.and_then(|()| self.classes.end());
        self.output.end();
        if !report.is_ours() {
            given_back.unwrap_or_else(|error| log::error!("{error:#}"));
            if report.lacks_nrt_cpu() {
                let online = setup.partition.rt.clone();
                return Err(ConfigError::NoNrtCpu { online }.into());
            }
            say(report.to_string().trim_end());
            return Err(Failure::Ejected(report.headline()));
        }
        served?;
        given_back?;
        say_farewell(&last);
        Ok(())
    }

    fn begin(&self, setup: &Setup, scheduler: &Scheduler<'_>) -> Begin {
        watcher::begin(setup, scheduler, &self.kernel, Model::now().to_string())
    }

    /// Answers and shows until the user or the kernel ends it.
    fn serve(
        &mut self,
        scheduler: &mut Scheduler<'_>,
        setup: &mut Setup,
        begin: &mut Begin,
    ) -> Result<(), Failure> {
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
    ) -> Result<(), Failure> {
        let (answer, mut ask) = self.requests.clone();
        let mut control = self.control.clone();
        let (mut tick, left) = (self.output.ticks(), self.output.left());
        let pulse = self.manager.pulse();
        let mut prev = None;
        let mut news_at = Instant::now();
        // unless none went or came while the scheduler was loaded
        let mut hotplug_seq = setup.is_current().then_some(0);
        if hotplug_seq.is_none() {
            scheduler.forget_faults();
        }
        while !scheduler.has_ended() {
            self.relief.turn();
            self.kernel_threads.turn(scheduler);
            // read before the machine is looked at
            let seq = scheduler.hotplug_seq();
            if hotplug_seq != Some(seq) && self.follow_cpus(scheduler, setup)? {
                hotplug_seq = Some(seq);
                *begin = self.begin(setup, scheduler);
                self.manager.status(&status(begin));
                watcher.tell_change(scheduler, begin);
            }
            let Ticks { changes, interval, poll } = watcher.ticks();
            let rest = news_at.saturating_duration_since(Instant::now());
            let news = if rest.is_zero() { scheduler.news() } else { never() };
            // what comes first is looked at first: a storm of news holds up nobody
            select_biased! {
                recv(self.told.stop) -> _ => return Ok(()),
                recv(pulse) -> _ => self.manager.alive(),
                recv(self.told.hangup) -> _ => {
                    if self.told.on_terminal && !self.classes.has_rules() {
                        return Ok(());
                    }
                    self.manager.reloading();
                    let reloaded = self.classes.reload(setup, scheduler);
                    match &reloaded {
                        Ok(text) => {
                            self.classes.doubts().iter().for_each(|doubt| log::warn!("{doubt}"));
                            self.output.tell(text, "SIGHUP");
                        }
                        Err(error) => log::warn!("{error}"),
                    }
                    let failed = reloaded.err().map(|error| format!("; not reloaded: {error}"));
                    self.manager.ready(&(status(begin) + &failed.unwrap_or_default()));
                }
                recv(left) -> left => {
                    left.context("the view is gone")?.context("the terminal is gone")?;
                    return Ok(());
                }
                recv(ask) -> asked => {
                    let Ok(asked) = asked else {
                        log::error!("the statistics server is gone: scx's tools see nothing any more");
                        ask = never();
                        continue;
                    };
                    let read = match asked {
                        Ask::Top => scheduler.read().map(Answer::Top),
                        Ask::Task(tid) => scheduler.read_task(tid).map(Answer::Task),
                    };
                    // fails as above
                    let _ = answer.send(read.unwrap_or_else(|e| Answer::Failed(format!("{e:#}"))));
                }
                recv(control) -> asked => {
                    let Ok(asked) = asked else {
                        log::error!("the control socket is gone: nothing can be changed any more");
                        control = never();
                        continue;
                    };
                    let reply = change(&asked.request, setup, scheduler, &mut self.classes);
                    if let Reply::Done { text, .. } = &reply {
                        self.output.tell(text, "ctl");
                    }
                    *begin = self.begin(setup, scheduler);
                    self.manager.status(&status(begin));
                    watcher.tell_change(scheduler, begin);
                    asked.answer(reply);
                }
                recv(changes) -> _ => watcher.adapt(scheduler, begin),
                recv(interval) -> _ => watcher.end_interval(scheduler),
                recv(poll) -> _ => watcher.poll(scheduler),
                recv(tick) -> _ => match scheduler.read() {
                    Ok(now) => {
                        self.output.show(&Metrics::between(prev.as_ref(), &now));
                        if matches!(self.output, Output::Nowhere) {
                            tick = never();
                        }
                        prev = Some(now);
                    }
                    Err(error) => log::error!("no line in this interval: {error:#}"),
                },
                recv(news) -> _ => {
                    let took = timed(|| self.classes.hear(setup, scheduler));
                    news_at = Instant::now() + took * NEWS_REST;
                }
                default(if rest.is_zero() { POLL } else { rest.min(POLL) }) => {
                    if rest.is_zero() {
                        let took = timed(|| self.classes.catch_up(setup, scheduler));
                        news_at = Instant::now() + took * NEWS_REST;
                    }
                }
            }
        }
        Ok(())
    }

    /// Goes on with the CPUs that are online now. False: not yet, it is to be tried again.
    fn follow_cpus(
        &mut self,
        scheduler: &mut Scheduler<'_>,
        setup: &mut Setup,
    ) -> Result<bool, Failure> {
        let classes = &mut self.classes;
        if Seen::online().is_ok_and(|online| scheduler.leaves(&online)) {
            scheduler.see_off();
            return Ok(false);
        }
        let seen = Seen::now().map_err(Failure::NotTaken);
        match seen.and_then(|seen| live::follow_cpus(setup, scheduler, classes, &seen)) {
            Ok(text) => self.output.tell(&text, "CPU hotplug"),
            Err(error @ Failure::NotTaken(_)) => {
                log::error!("a CPU came or went: {error}");
                return Ok(false);
            }
            Err(error) => return Err(error),
        }
        place::take(setup);
        Ok(true)
    }
}

/// How long this thread has run for it.
fn timed(work: impl FnOnce()) -> Duration {
    // fails for a clock that does not exist only
    let ran =
        || clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let before = ran();
    work();
    ran().saturating_sub(before)
}

/// What `systemctl status` shows.
fn status(begin: &Begin) -> String {
    let Begin { rt_cpus, nrt_cpus, preemption, .. } = begin;
    format!("RT CPUs {rt_cpus}, NRT CPUs {nrt_cpus}, preemption {preemption}")
}

/// Does what `scx_artis ctl` asks for; the daemon itself leaves what are RT CPUs now.
fn change(
    request: &Request,
    setup: &mut Setup,
    scheduler: &mut Scheduler<'_>,
    classes: &mut Classes,
) -> Reply {
    let reply = live::answer(request, setup, scheduler, classes, Seen::now);
    if matches!(request, Request::RtCpus { .. }) {
        place::stay_on_nrt(setup);
    }
    reply.unwrap_or_else(Reply::from)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_damaged_file_keeps_no_task_from_being_put_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let run_dir = RunDir::lock(&dir.path().join("run")).expect("locked");
        let (knob, mut tried) = (dir.path().join("knob"), 0);
        for damaged in [run_dir.saved_preempt(), run_dir.kernel_threads()] {
            fs::write(&damaged, "?").expect("written");
            let tasks = || {
                tried += 1;
                Ok(())
            };
            let error = put_back(&knob, &run_dir, tasks).expect_err("damaged").to_string();
            assert!(error.contains("damaged"), "{error}");
            fs::remove_file(&damaged).expect("there still");
        }
        assert_eq!(tried, 2);
        put_back(&knob, &run_dir, || Ok(())).expect("nothing is left");
    }
}
