// SPDX-License-Identifier: GPL-2.0-only
//! No task gains anything by what it says about itself, and none that was real time loses it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::adopt::{becomes, stay_out};
use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, hotplug, say};
use crate::daemon::Daemon;
use crate::forge;
use crate::guest::{PATIENCE, until};
use crate::load::Workers;
use crate::parent::Parent;
use crate::policy::{EXT, Policy, cpus_of, has_living_child, is_stopped, start_ticks};
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a policy, or affinity, that is given to a task because of attributes that it, or its
/// parent, has set itself. With scx_artis of 2026-11-21 (a340281) each forger is SCHED_FIFO or
/// SCHED_RR as soon as it starts. And a record that is not root's own, or of another layout; and records
/// that do not follow a fork after the daemon's death, an orphan, or a thread that executes a program.
pub const FORGER: Scenario = Scenario {
    name: "forger",
    what: "a task gets back what it was, and nothing that it says it was",
    scope: Scope::First,
    boot: &[],
    secs: 43,
    host: Host::Alone,
    complaints: &[],
    run: forger,
};

/// Which of the workers forks.
const FORKS: usize = 4;
const RULES: &str = "/tmp/forger.toml";

fn fifo(priority: u32) -> Policy {
    Policy::new(libc::SCHED_FIFO, priority)
}

fn adopted() -> Policy {
    Policy { policy: EXT, ..fifo(0) }
}

/// The kernel refuses what a keeper of the records asks for by a thread id that is another task's by
/// now, and only that.
fn changes_only_the_task_that_it_means(tid: i32) -> Result<()> {
    let start = start_ticks(tid)?;
    let is_gone = |done: Result<()>| {
        done.is_err_and(|error| format!("{error:#}").contains("No such process"))
    };
    let own = std::process::id();
    forge::aim_at(own, tid, start - 1)?;
    ensure!(is_gone(adopted().set(tid)), "the policy of another task was set");
    ensure!(is_gone(cpus_of(tid)?.bind(tid)), "the affinity of another task was set");
    forge::aim_at(own, tid, start)?;
    adopted().set(tid).context("the task that is meant")?;
    cpus_of(tid)?.bind(tid)?;
    forge::aim_at(0, tid, start)
}

/// The forgers have seen nothing in two more rounds, nor does root now.
fn ensure_ordinary(forgers: &mut Workers, when: &str) -> Result<()> {
    let rounds = forgers.counts()[0];
    until(&format!("the forgers look {when}"), PATIENCE, || {
        forgers.ensure_alive(when)?;
        Ok(forgers.counts()[0] >= rounds + 2)
    })?;
    let seen = forge::seen()?;
    ensure!(seen.len() > 6, "control: only {} tasks of uid {} {when}", seen.len(), forge::UID);
    for (tid, policy) in &seen {
        ensure!(policy.priority == 0, "task {tid} of uid {} is {policy:?} {when}", forge::UID);
    }
    say(&format!("{} tasks of uid {} are ordinary ones {when}", seen.len(), forge::UID));
    Ok(())
}

/// It gives up its real-time policy, and looks as an adopted task does.
fn gives_up(tid: i32) -> Result<()> {
    Policy::new(libc::SCHED_OTHER, 0).set(tid)?;
    adopted().set(tid)
}

/// A program sets another real-time priority for an adopted task, and the daemon, which has not
/// heard of it yet, adopts the task right after. The daemon is this process here.
fn is_undone(tid: i32, priority: u32) -> Result<()> {
    let keeper = MapHandle::from_pinned_path(format!("{}/keeper", forge::PINNED))?;
    let first = 0_u32.to_ne_bytes();
    let mut value = keeper.lookup(&first, MapFlags::ANY)?.context("no keeper")?;
    let tgid = value.get_mut(4..8).context("a short struct artis_keeper")?;
    ensure!(tgid == [0; 4], "the keeper is dead, and another process may get its id");
    tgid.copy_from_slice(&std::process::id().to_ne_bytes());
    keeper.update(&first, &value, MapFlags::ANY)?;
    let (priority, tid_text) = (priority.to_string(), tid.to_string());
    let status = Command::new("chrt").args(["-f", "-p", &priority, &tid_text]).status()?;
    ensure!(status.success(), "chrt: {status}");
    adopted().set(tid)
}

/// The task that forks has had many children.
fn has_children(workers: &Workers) -> Result<()> {
    let forked = workers.counts()[FORKS];
    until("it has many children", PATIENCE, || Ok(workers.counts()[FORKS] >= forked + 200))
}

fn forger(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let before = Inventory::now();
    let mut forgers = Workers::start("forgers", [Spec::new(Kind::Forge).on(ctx.all())])?;
    forgers.wait_begun()?;
    let sleeper = |priority| Spec::new(Kind::Sleep).on(ctx.all()).fifo(priority);
    let forks = Spec::new(Kind::Fork).on(ctx.all()).fifo(40);
    let mut workers =
        Workers::start("real", [50, 60, 61, 62].map(sleeper).into_iter().chain([forks]))?;
    workers.wait_begun()?;
    // it keeps a CPU from the programs under test
    workers.freeze_one(FORKS, true)?;
    let [real, early, late, settled] = [0, 1, 2, 3].map(|i| workers.pid(i).cast_signed());
    ensure_ordinary(&mut forgers, "before the start")?;

    let squatter = forge::Squatter::new(forgers.pid(0))?;
    let ended = Daemon::run(&ctx.program, &["--rt-cpus", &ctx.rt.to_string(), "--adopt"])?;
    let refused = ended.code == 3 && ended.output.contains("remove it");
    ensure!(refused, "--adopt where others pin: {}\n{}", ended.code, ended.output);
    let daemon = ctx.load(&[])?;
    let named = format!("SCHED_FIFO 50 task {real} ");
    until("all tasks were looked at", PATIENCE, || Ok(daemon.output().contains(&named)))?;
    ensure_ordinary(&mut forgers, "after the start")?;
    daemon.finish()?;
    ensure_ordinary(&mut forgers, "after the end")?;
    drop(squatter);

    // with rules, so that each execution of a program is heard of
    fs::write(RULES, "[[rule]]\ncomm = 'nobody'\nclass = 'rt1'\npriority = 1\n")?;
    let mut parent = Parent::start(ctx.all(), fifo(25))?;
    let resets = Policy { reset_on_fork: true, ..fifo(26) };
    let mut resetting = Parent::start(ctx.all(), resets)?;
    let mut daemon = ctx.load(&["--adopt", "--config", RULES])?;
    workers.freeze_one(FORKS, false)?;
    for tid in [real, early, late, parent.tid()] {
        becomes(tid, "a real-time task is adopted", adopted())?;
    }
    // the last one that it meant may have ended: children of the task that forks are adopted, too
    until("the last task that the daemon meant lives", PATIENCE, || {
        let (tid, start) = forge::aimed_at()?;
        let Ok(began) = start_ticks(tid) else { return Ok(false) };
        ensure!(began == start, "the daemon meant a task {tid} that began at {start}, not {began}");
        Ok(true)
    })?;
    let mut execs = Workers::start("execs", [Spec::new(Kind::Become).on(ctx.all()).fifo(35)])?;
    let process = execs.pid(0);
    until("an adopted thread has executed a program", PATIENCE, || {
        execs.ensure_alive("before it executes a program")?;
        Ok(fs::read_to_string(format!("/proc/{process}/comm"))?.trim() == "sleep")
    })?;
    ensure_ordinary(&mut forgers, "with --adopt")?;
    has_children(&workers)?;
    let records = MapHandle::from_pinned_path(format!("{}/changes", forge::PINNED))?.keys().count();
    ensure!((8..50).contains(&records), "{records} records of changed tasks");
    told(ctx, &["rt-cpus", "3"], 0)?;
    told(ctx, &["rt-cpus", &ctx.rt.to_string()], 0)?;
    ensure_ordinary(&mut forgers, "after ctl rt-cpus")?;
    for online in [false, true] {
        hotplug::switch(ctx, &mut daemon, ctx.rt.last()?, online)?;
    }
    ensure_ordinary(&mut forgers, "after an RT CPU went and came")?;
    kill(Pid::from_raw(daemon.pid().cast_signed()), Signal::SIGHUP)?;
    until("the rules are read again", PATIENCE, || Ok(daemon.output().contains("SIGHUP")))
        .with_context(|| daemon.output())?;
    ensure_ordinary(&mut forgers, "after a reload")?;
    gives_up(early)?;
    daemon.stop(Signal::SIGKILL)?;
    gives_up(late)?;
    changes_only_the_task_that_it_means(real)?;
    let orphan = parent.orphan()?;
    ensure!(Policy::of(orphan)? == Some(adopted()), "control: the orphan was not born adopted");
    let ordinary = resetting.orphan()?;
    ensure_ordinary(&mut forgers, "after SIGKILL")?;
    is_undone(settled, 45)?;
    let normal = Policy::new(libc::SCHED_OTHER, 0);
    forge::newer_by(1)?;
    let ended = Daemon::run(&ctx.program, &["restore"])?;
    let refused = ended.code == 1 && ended.output.contains("another version");
    ensure!(refused, "restore of other records: {}\n{}", ended.code, ended.output);
    ensure!(Policy::of(real)? == Some(adopted()), "by it, a task is {:?}", Policy::of(real)?);
    forge::newer_by(0)?;
    let ended = Daemon::run(&ctx.program, &["restore"])?;
    ensure!(ended.code == 0, "restore: {}\n{}", ended.code, ended.output);
    for (tid, what, expected) in [
        (real, "an adopted task", fifo(50)),
        (settled, "a task with a new priority that was undone", fifo(45)),
        (early, "a task that gave up its policy", adopted()),
        (late, "a task that gave up its policy when the daemon was dead", adopted()),
        (orphan, "an orphan of an adopted task", fifo(25)),
        (ordinary, "a child of a parent with SCHED_RESET_ON_FORK", normal),
        (process.cast_signed(), "an adopted thread that has executed a program", fifo(35)),
    ] {
        let now = Policy::of(tid)?;
        ensure!(now == Some(expected), "after restore {what} is {now:?}, not {expected:?}");
    }
    ensure_ordinary(&mut forgers, "after restore")?;

    let daemon = ctx.load(&["--confine"])?;
    for tid in [real, settled] {
        until("it is bound to NRT CPUs", PATIENCE, || Ok(cpus_of(tid)? == ctx.nrt))?;
    }
    ctx.nrt.bind(settled)?; // as it is already, but by its own wish
    // a child that ends would make room
    workers.freeze_one(FORKS, true)?;
    let forking = workers.pid(FORKS).cast_signed();
    until("it forks no more", PATIENCE, || is_stopped(forking))?;
    until("it has no child that lives", PATIENCE, || Ok(!has_living_child(forking)?))?;
    forge::fill_records()?;
    workers.freeze_one(FORKS, false)?;
    fifo(63).set(early)?;
    until("it is said that a task cannot be confined", PATIENCE, || {
        Ok(daemon.output().contains("cannot be remembered"))
    })
    .with_context(|| format!("task {early} is on {:?}\n{}", cpus_of(early), daemon.output()))?;
    has_children(&workers)?;
    ensure!(cpus_of(early)? == ctx.all(), "a task without a record is on {}", cpus_of(early)?);
    ensure!(Policy::of(real)? == Some(fifo(50)), "a confined task is {:?}", Policy::of(real)?);
    ensure_ordinary(&mut forgers, "with --confine")?;
    daemon.stop(Signal::SIGKILL)?;
    let daemon = ctx.load(&[])?;
    let output = daemon.output();
    ensure!(output.contains("children of changed tasks were not remembered"), "{output}");
    daemon.finish()?;
    ensure!(cpus_of(real)? == ctx.all(), "afterwards it is bound to {}", cpus_of(real)?);
    ensure!(
        cpus_of(settled)? == ctx.nrt,
        "a task that has bound itself is on {}",
        cpus_of(settled)?
    );
    ensure_ordinary(&mut forgers, "at the end of all")?;
    drop((forgers, workers, execs, parent, resetting));
    fs::remove_file(RULES)?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}
