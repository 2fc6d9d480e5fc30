// SPDX-License-Identifier: GPL-2.0-only
//! Adoption of real-time tasks, and real-time tasks that are kept off the RT CPUs.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::{Daemon, Stats};
use crate::guest::{PATIENCE, pause, until};
use crate::kernel_threads::realtime;
use crate::load::Workers;
use crate::parent::Parent;
use crate::policy::{EXT, Policy, cpus_of};
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a task that is not adopted, adopted with another priority, or is not what it was
/// afterwards; a kernel thread or a task bound to RT CPUs that is touched; a child that stays
/// behind, is not RT1+, or is RT1+ although its parent has SCHED_RESET_ON_FORK; a task with a name
/// that is not UTF-8 that is left alone; a name that comes to the terminal as it is.
pub const ADOPT: Scenario = Scenario {
    name: "adopt",
    what: "SCHED_FIFO and SCHED_RR tasks become RT1+, and what they were at the end",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 12,
    host: Host::Alone,
    complaints: &[],
    run: adopt,
};

/// Binds the calling thread to RT CPUs: should it be real time, it is left alone there.
pub fn stay_out(ctx: &Ctx) -> Result<()> {
    ctx.rt.bind(0)
}

/// What the policy of an adopted task looks like that had SCHED_RESET_ON_FORK.
const GUISE: Policy = Policy { reset_on_fork: true, ..Policy::new(libc::SCHED_OTHER, 0) };

/// Waits until the thread has this policy.
pub fn becomes(tid: i32, what: &str, expected: Policy) -> Result<()> {
    let mut now = None;
    until(what, PATIENCE, || {
        now = Policy::of(tid)?;
        Ok(now == Some(expected))
    })
    .with_context(|| format!("task {tid} is {now:?}, not {expected:?}"))
}

fn ensure_same(threads: &[(i32, Policy)]) -> Result<()> {
    for (pid, policy) in threads {
        let now = Policy::of(*pid)?;
        ensure!(now.is_none_or(|now| now == *policy), "kernel thread {pid} is {now:?} now");
    }
    Ok(())
}

fn adopt(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let before = Inventory::now();
    let kernel = realtime()?;
    ensure!(!kernel.is_empty(), "control: no real-time kernel thread");
    let sleeper = || Spec::new(Kind::Sleep).on(ctx.all());
    let specs = [
        sleeper().fifo(50),
        sleeper().fifo(99),
        sleeper(),
        Spec::new(Kind::Sleep).on(ctx.rt).fifo(60),
        sleeper().fifo(30),
    ];
    let mut workers = Workers::start("adopted", specs)?;
    workers.wait_begun()?;
    let tid = |i: usize| workers.pid(i).cast_signed();
    let (fifo, highest, later, bound, resets) = (tid(0), tid(1), tid(2), tid(3), tid(4));
    let was = |priority| Policy::new(libc::SCHED_FIFO, priority);
    let rr = Policy::new(libc::SCHED_RR, 20);
    let reset = Policy { reset_on_fork: true, ..was(30) };
    reset.set(resets)?;
    let adopted = Policy { policy: EXT, ..was(0) };

    let mut bearing = Parent::start(ctx.all(), was(27))?;
    let mut sparing = Parent::start(ctx.all(), Policy { reset_on_fork: true, ..was(28) })?;

    let mut daemon = ctx.load(&["--adopt"])?;
    for task in [fifo, highest, bearing.tid()] {
        becomes(task, "a FIFO task is adopted", adopted)?;
    }
    becomes(resets, "a task with SCHED_RESET_ON_FORK is adopted", GUISE)?;
    inherits(&daemon, &mut bearing, &mut sparing)?;
    drop((bearing, sparing));
    ensure!(Policy::of(bound)? == Some(was(60)), "an RT0 task was touched");
    // as it appears
    rr.set(later)?;
    becomes(later, "a new RR task is adopted", adopted)?;
    ensure_same(&kernel)?;
    // it means itself
    was(40).set(fifo)?;
    becomes(fifo, "a task that sets its policy is adopted anew", adopted)?;
    Policy::new(libc::SCHED_OTHER, 0).set(highest)?;
    pause(0.3);
    let normal = Policy::new(libc::SCHED_OTHER, 0);
    ensure!(Policy::of(highest)? == Some(normal), "its own wish to be no real-time task");
    ctx.rt.bind(later)?;
    becomes(later, "bound to RT CPUs it is an RT0 task", rr)?;
    ctx.all().bind(later)?;
    becomes(later, "no longer bound it is adopted again", adopted)?;
    daemon.ensure_loaded("with adopted tasks")?;
    workers.ensure_progress(1.0, "while adopted")?;

    let children = forking(ctx)?;
    say("children of an adopted task are as it is, and real time in the end");
    daemon.finish()?;
    for (task, expected) in
        [(fifo, was(40)), (highest, normal), (later, rr), (bound, was(60)), (resets, reset)]
    {
        ensure!(Policy::of(task)? == Some(expected), "{:?}, not {expected:?}", Policy::of(task)?);
    }
    children.ensure_fifo(25)?;
    ensure_same(&kernel)?;

    say("kept off the RT CPUs");
    let all = cpus_of(fifo)?;
    let mut daemon = ctx.load(&["--confine"])?;
    until("a FIFO task is bound to NRT CPUs", PATIENCE, || Ok(cpus_of(fifo)? == ctx.nrt))?;
    ensure!(cpus_of(bound)? == ctx.rt, "an RT0 task was bound elsewhere");
    ensure!(cpus_of(highest)? == all, "a normal task was bound");
    daemon.ensure_loaded("with confined tasks")?;
    daemon.finish()?;
    ensure!(cpus_of(fifo)? == all, "afterwards it is bound to {}", cpus_of(fifo)?);

    say("named");
    let daemon = ctx.load(&[])?;
    let named = format!("SCHED_FIFO 40 task {fifo} ");
    until("it is named", PATIENCE, || Ok(daemon.output().contains(&named)))
        .with_context(|| daemon.output())?;
    ensure!(!daemon.output().contains(&format!("task {bound} ")), "an RT0 task is named");
    let named = format!("SCHED_FIFO 25 task {} (par", children.tids[0]);
    until("one with an odd name is named", PATIENCE, || Ok(daemon.output().contains(&named)))
        .with_context(|| daemon.output())?;
    let output = daemon.output(); // which has this character for bytes that are not UTF-8
    ensure!(!output.contains(['\x1b', char::REPLACEMENT_CHARACTER]), "as it is: {output:?}");
    daemon.finish()?;
    drop(children);
    drop(workers);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// A child of an RT1+ task is RT1+, unless the task has SCHED_RESET_ON_FORK. There are no rules,
/// so the daemon does not look at the children: what they are, the scheduler decides at the fork.
fn inherits(daemon: &Daemon, bearing: &mut Parent, sparing: &mut Parent) -> Result<()> {
    becomes(sparing.tid(), "a parent with SCHED_RESET_ON_FORK is adopted", GUISE)?;
    let mut stats = daemon.stats()?;
    let rt1 = |stats: &mut Stats, tid: i32| -> Result<u64> {
        let row = stats.task(tid.cast_unsigned())?;
        row["rt1"].as_u64().with_context(|| format!("no rt1 in {row}"))
    };
    let parents = [rt1(&mut stats, bearing.tid())?, rt1(&mut stats, sparing.tid())?];
    ensure!(!parents.contains(&0), "control: adopted parents have the RT1+ priorities {parents:?}");
    let (born, spared) = (bearing.orphan()?, sparing.orphan()?);
    let children = [rt1(&mut stats, born)?, rt1(&mut stats, spared)?];
    ensure!(
        children == [parents[0], 0],
        "children of parents with the RT1+ priorities {parents:?}, the second of which has \
         SCHED_RESET_ON_FORK, have {children:?}"
    );
    Ok(())
}

/// Threads of an adopted thread, and of one of these.
struct Children {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    tids: Vec<i32>,
    thread: Option<std::thread::JoinHandle<()>>,
}

fn forking(ctx: &Ctx) -> Result<Children> {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, mpsc};
    let (stop, all) = (Arc::new(AtomicBool::new(false)), ctx.all());
    let (tell, told) = mpsc::channel();
    let ended = Arc::clone(&stop);
    let parent = std::thread::spawn(move || {
        let own = crate::policy::gettid();
        // its children have that name, too: names are bytes
        let named = fs::write("/proc/thread-self/comm", b"par\xff\x1b[").context("the name");
        let begin = named.and_then(|()| all.bind(0));
        let begin = begin.and_then(|()| Policy::new(libc::SCHED_FIFO, 25).set(0));
        let adopted = Policy { policy: EXT, ..Policy::new(0, 0) };
        let begin = begin.and_then(|()| becomes(own, "the parent is adopted", adopted));
        if let Err(error) = begin {
            return say(&format!("{error:#}"));
        }
        let _ = tell.send(own);
        let wait = move |ended: &AtomicBool| {
            while !ended.load(Ordering::Relaxed) {
                pause(0.01);
            }
        };
        let (ended_1, ended_2) = (Arc::clone(&ended), Arc::clone(&ended));
        let tell_2 = tell.clone();
        let child = std::thread::spawn(move || {
            let _ = tell_2.send(crate::policy::gettid());
            let tell_3 = tell_2.clone();
            let child = std::thread::spawn(move || {
                let _ = tell_3.send(crate::policy::gettid());
                wait(&ended_2);
            });
            wait(&ended_1);
            let _ = child.join();
        });
        wait(&ended);
        let _ = child.join();
    });
    let tids = (0..3).map(|_| told.recv_timeout(PATIENCE).context("no child began"));
    let tids: Vec<_> = tids.collect::<Result<_>>()?;
    let children = Children { stop, tids, thread: Some(parent) };
    for tid in &children.tids {
        let policy = Policy::of(*tid)?.context("a child is gone")?;
        ensure!(policy.policy == EXT, "a child of an adopted task is {policy:?}");
    }
    Ok(children)
}

impl Children {
    fn ensure_fifo(&self, priority: u32) -> Result<()> {
        for tid in &self.tids {
            let policy = Policy::of(*tid)?;
            let expected = Policy::new(libc::SCHED_FIFO, priority);
            ensure!(policy == Some(expected), "a child is {policy:?}, not {expected:?}");
        }
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
