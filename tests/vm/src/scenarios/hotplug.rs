// SPDX-License-Identifier: GPL-2.0-only
//! CPUs that go and come.

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::control::{SOCKET, partition};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{self, PATIENCE, pause, until};
use crate::leaving::Leaving;
use crate::load::Workers;
use crate::policy::cpu_of;
use crate::worker::{Kind, Spec};

/// Catches: a scheduler that ends when a CPU goes or comes, or sends tasks to one that has gone; tasks
/// that stay where nothing takes them any more, or that the CPU waits for, which then never goes; a
/// CPU that comes back without its hooks, or not as the RT CPU that it was, or that takes tasks which
/// enter the kernel there before it is one; a daemon that waits because of what it ran.
pub const HOTPLUG: Scenario = Scenario {
    name: "hotplug",
    what: "an RT and an NRT CPU go offline and come back, and the scheduler stays in charge",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 60,
    host: Host::Alone,
    // of 6.12 itself (docs/decisions/0024-hotplug.md): dl_server_stop() of a server that is stopped
    // already. The first is inlined into task_non_contending() and into inactive_task_timer()
    complaints: &["at kernel/sched/deadline.c:265 ", "at kernel/sched/deadline.c:428 "],
    run: hotplug,
};

const WINDOW: f64 = 2.0;
/// Times that a CPU goes and comes before it is looked at. What goes wrong does so in some of them.
const TURNS: usize = 10;
const QUEUED_TURNS: usize = 2;
const LOOKS: u32 = 100;

fn hotplug(ctx: &Ctx) -> Result<Outcome> {
    early(ctx)?;
    let mut leaving = Leaving::attach()?;
    let mut daemon = ctx.load(&[])?;
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    let all = [Spin, Spin, Spin, Spin, Call, Sleep, Fork, Touch];
    let mut workers = Workers::start("hotplug", all.map(Spec::new))?;
    workers.wait_begun()?;
    // the kernel counts the start of a scheduler after it calls it enabled
    until("an answer of the daemon", PATIENCE, || Ok(partition().is_ok()))?;
    let seq = guest::enable_seq()?;
    for cpu in [ctx.rt.last()?, ctx.nrt.last()?] {
        let bound = [Spin, Call, Touch].map(|kind| Spec::new(kind).on(Cpus::one(cpu)));
        let mut bound = Workers::start("bound", bound)?;
        bound.wait_begun().with_context(|| format!("bound to CPU {cpu}"))?;
        for _ in 0..TURNS {
            // the kernel has let them go elsewhere
            for i in 0..bound.len() {
                Cpus::one(cpu).bind(bound.pid(i).cast_signed())?;
            }
            pause(0.05);
            set_online(cpu, false)?;
            leaving.ensure_no_kick(cpu)?;
            set_online(cpu, true)?;
        }
        for online in [false, true] {
            switch(ctx, &mut daemon, cpu, online)?;
            let when = format!("with online={online} for CPU {cpu}");
            // the kernel has what is bound run elsewhere, and it may do so from then on
            let both = &mut [&mut workers, &mut bound];
            Workers::ensure_all_progress(both, WINDOW, &when)?;
        }
    }
    ensure!(guest::enable_seq()? == seq, "the scheduler was started anew");
    drop(workers);
    unattended(ctx, &mut daemon)?;
    queued(ctx, &mut daemon)?;
    let (runs, gone) = (leaving.ensure_no_slice()?, leaving.ensure_none_taken()?);
    say(&format!("{gone} CPUs went, and threads of theirs ran there {runs} times meanwhile"));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// An NRT CPU goes offline while the scheduler is loaded: the partition is made before, and the BPF
/// programs notice CPUs that go only once they are attached.
fn early(ctx: &Ctx) -> Result<()> {
    let cpu = ctx.nrt.last()?;
    let mut daemon = thread::scope(|scope| {
        let goes = scope.spawn(|| {
            // it listens once it knows the CPUs, before it loads the scheduler
            let control = Path::new(SOCKET);
            until("a daemon that has seen the CPUs", PATIENCE, || Ok(control.exists()))?;
            set_online(cpu, false)
        });
        let loaded = ctx.load(&[]);
        goes.join().expect("no panic").and(loaded)
    })?;
    follows(ctx, &mut daemon, Cpus::one(cpu))?;
    switch(ctx, &mut daemon, cpu, true)?;
    daemon.finish()
}

/// A CPU goes offline while tasks that ran there last wait behind many of more weight. The kernel waits
/// until they have left its run queue, and for good where another CPU takes the last of them meanwhile.
fn queued(ctx: &Ctx, daemon: &mut Daemon) -> Result<()> {
    let cpu = ctx.nrt.last()?;
    let mut patient =
        Workers::start("patient", [Kind::Spin; 16].map(|kind| Spec::new(kind).nice(19)))?;
    patient.wait_begun()?;
    let mut others = Workers::start("others", [Kind::Spin; 12].map(Spec::new))?;
    others.wait_begun()?;
    let pid = daemon.pid();
    let had = || Ok::<_, anyhow::Error>((guest::run_time_ns(pid)?, guest::wait_time_ns(pid)?));
    let before = had()?;
    for _ in 0..QUEUED_TURNS {
        others.freeze(true)?;
        pause(0.1); // the patient ones run on each CPU
        others.freeze(false)?;
        pause(0.02);
        set_online(cpu, false)?;
        // before it is of a kind again, none of them runs there
        switch(ctx, daemon, cpu, true)?;
    }
    let now = had()?;
    let (ran_ms, waited_ms) = ((now.0 - before.0) / 1_000_000, (now.1 - before.1) / 1_000_000);
    let what =
        format!("the daemon, of nice -10, ran for {ran_ms} ms and waited for {waited_ms} ms");
    ensure!(waited_ms < ran_ms, "{what}");
    say(&what);
    Ok(())
}

/// An RT CPU comes back while the daemon is stopped, which makes the partition. Until then it is of
/// neither kind: only what is bound to it may run there. The auditor knows it as an RT CPU: no child
/// may exit there.
fn unattended(ctx: &Ctx, daemon: &mut Daemon) -> Result<()> {
    let cpu = ctx.rt.last()?;
    switch(ctx, daemon, cpu, false)?;
    let kinds = [Kind::Job; 4].into_iter().chain([Kind::Spin; 4]);
    let mut workers = Workers::start("unattended", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    daemon.signal(Signal::SIGSTOP)?;
    set_online(cpu, true)?;
    let kept_off = stays_empty(&mut workers, cpu);
    daemon.signal(Signal::SIGCONT)?;
    kept_off?;
    switch(ctx, daemon, cpu, true)
}

/// None of the workers is seen on the CPU, and all of them get on.
fn stays_empty(workers: &mut Workers, cpu: u32) -> Result<()> {
    let before = workers.counts();
    for _ in 0..LOOKS {
        for worker in 0..workers.len() {
            let at = cpu_of(workers.pid(worker).cast_signed())?;
            ensure!(at != cpu, "worker {worker} runs on CPU {cpu}, which is of no kind yet");
        }
        pause(WINDOW / f64::from(LOOKS));
    }
    let stuck = before.iter().zip(workers.counts()).position(|(then, now)| now == *then);
    ensure!(stuck.is_none(), "worker {stuck:?} stands still while the daemon is stopped");
    Ok(())
}

/// By an ordinary task, not by this real-time one: the CPU that goes may be the one that wakes it,
/// when it takes no more interrupts.
pub(super) fn set_online(cpu: u32, online: bool) -> Result<()> {
    let line = format!("echo {} > /sys/devices/system/cpu/cpu{cpu}/online", u8::from(online));
    let status = Command::new("sh").args(["-c", &line]).status()?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

/// Switches the CPU and waits until the partition follows.
pub(super) fn switch(ctx: &Ctx, daemon: &mut Daemon, cpu: u32, online: bool) -> Result<()> {
    set_online(cpu, online)?;
    let gone = if online { Cpus::default() } else { Cpus::one(cpu) };
    let what = follows(ctx, daemon, gone)?;
    say(&format!("CPU {cpu} online={online}: {what}"));
    Ok(())
}

/// Waits until the partition has all CPUs but those that are `gone`; returns it in words.
fn follows(ctx: &Ctx, daemon: &mut Daemon, gone: Cpus) -> Result<String> {
    let wanted = (ctx.rt.without(gone), ctx.nrt.without(gone));
    let what = format!("RT CPUs {} and NRT CPUs {}", wanted.0, wanted.1);
    until(&what, PATIENCE, || Ok(partition()? == wanted)).with_context(|| daemon.whereabouts())?;
    daemon.ensure_loaded("after hotplug")?;
    Ok(what)
}
