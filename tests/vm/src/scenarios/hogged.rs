// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks hold all NRT CPUs, where the daemon has to run.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::adopt::{becomes, stay_out};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::figure::figure;
use crate::guest::{describe, pause, preempt_rt, scx_state, status_number, until};
use crate::kernel_threads::Raised;
use crate::load::Workers;
use crate::occupancy::Occupancy;
use crate::policy::{EXT, Policy};
use crate::residue::Inventory;
use crate::worker::{Kind, Spec, set_fifo};

/// Catches: a daemon that answers, adopts, or ends only when the hogs do; one that runs on RT CPUs for
/// that. Without relief nothing is answered, until the kernel ejects the scheduler after 30 s, or, beside
/// a daemon that waits for RCU, after 21.
pub const HOGGED: Scenario = Scenario {
    name: "hogged",
    what: "SCHED_FIFO 98 on all NRT CPUs: ctl is answered, tasks are adopted and put back, the end comes",
    scope: Scope::Both,
    boot: &[],
    secs: 30,
    host: Host::Alone,
    complaints: &[],
    run: hogged,
};

/// Less than the time after which the kernel ejects a scheduler under which a task waits.
const PATIENCE: Duration = Duration::from_secs(25);
/// Above all that is not the kernel's own.
const URGENT: u32 = 80;
/// The hogs stay what they are.
const RULES: &str = "/tmp/hogged.toml";
/// Real-time share of a CPU that is hogged.
const HOGGED_MIN: f64 = 0.7;

fn hogged(ctx: &Ctx) -> Result<Outcome> {
    stay_out(ctx)?;
    let raised = Raised::to(99)?;
    let before = Inventory::now();
    let fifo = |priority| Policy::new(libc::SCHED_FIFO, priority);
    let adopted = Policy { policy: EXT, ..fifo(0) };
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let early = Sleeper::begin(ctx.all(), fifo(50))?;
    fs::write(RULES, "[[rule]]\ncomm = 'art-spin*'\nadopt = false\n")?;
    let mut daemon = ctx.load(&["--adopt", "--config", RULES])?;
    becomes(early.tid(), "adopted before the hogs", adopted)?;
    let threads = threads_of(daemon.pid())?;
    let slot = observer.watch(threads.iter().copied())?;
    let locked = status_number(daemon.pid(), "VmLck")?;
    ensure!(locked > 0, "no memory of the daemon is locked");

    ensure_room_for_files(daemon.pid())?;
    let hog = |cpu| Spec::new(Kind::Spin).on(Cpus::one(cpu)).fifo(98);
    let mut hogs = Workers::start("hogs", ctx.nrt.iter().map(hog))?;
    hogs.wait_begun()?;
    pause(1.0);
    let begun = observer.snapshot()?;
    let mut answered_s = 0.0_f64;
    for turn in 0..5 {
        let asked = Instant::now();
        let value = (2_000 + turn).to_string();
        urgent(ctx, &["ctl", "set", "predict-c-us", &value])?;
        answered_s = answered_s.max(asked.elapsed().as_secs_f64());
        pause(0.3);
    }
    after("ctl_answered_at_most", answered_s);
    let late = Sleeper::begin(ctx.all(), fifo(40))?;
    let asked = Instant::now();
    until("a task that comes beside the hogs is adopted", PATIENCE, || {
        Ok(Policy::of(late.tid())? == Some(adopted))
    })?;
    after("adopted", asked.elapsed().as_secs_f64());
    hogs.ensure_progress(1.0, "beside the daemon")?;
    daemon.ensure_loaded("beside the hogs")?;
    let seen = observer.snapshot()?.since(&begun);
    for (task, tid) in seen.tasks[slot..].iter().zip(&threads) {
        let on_rt = task.on_ns(ctx.rt);
        ensure!(on_rt == 0, "thread {tid} of the daemon ran on RT CPUs for {on_rt} ns");
    }
    for cpu in ctx.nrt.iter() {
        let share = seen.rt_share(cpu);
        ensure!(
            share > HOGGED_MIN,
            "real-time tasks had {share:.3} of CPU {cpu}: it is not hogged"
        );
    }

    let asked = Instant::now();
    daemon.signal(Signal::SIGTERM)?;
    until("the machine is given back", PATIENCE, || Ok(scx_state()? == "disabled"))?;
    after("given_back", asked.elapsed().as_secs_f64());
    for (task, priority) in [(&early, 50), (&late, 40)] {
        until("the tasks are as they were", PATIENCE, || {
            Ok(Policy::of(task.tid())? == Some(fifo(priority)))
        })?;
    }
    if preempt_rt() {
        // what is left to do there is up to threads of the kernel of low priorities
        hogs.freeze(true)?;
    }
    let ended = daemon.ended()?;
    after("ended", asked.elapsed().as_secs_f64());
    ensure!(ended.code == 0, "its end: exit code {}\n{}", ended.code, ended.output);
    drop((early, late, hogs, observer, raised));
    fs::remove_file(RULES)?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// Tells how long something took beside the hogs.
fn after(what: &str, secs: f64) {
    say(&format!("{what}: {secs:.2} s"));
    figure(what, format!("{secs:.2}"), "s");
}

/// The kernel enlarges a table of open files that threads share after a grace period of RCU, and none
/// ends beside the hogs: a daemon that has 121 files open in a table for 128 is stuck now and then.
fn ensure_room_for_files(pid: u32) -> Result<()> {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
    let room = usize::try_from(status_number(pid, "FDSize")?)?;
    ensure!(room >= 4 * open, "the daemon has {open} files open, and room for {room} only");
    Ok(())
}

/// A task that sleeps all the time: it waits for no CPU beside the hogs. Killed when dropped.
struct Sleeper(Child);

impl Sleeper {
    fn begin(cpus: Cpus, policy: Policy) -> Result<Self> {
        let sleeper = Self(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn()?);
        until("it sleeps", PATIENCE, || Ok(describe(sleeper.0.id()).starts_with('S')))?;
        cpus.bind(sleeper.tid())?;
        policy.set(sleeper.tid())?;
        Ok(sleeper)
    }

    fn tid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command of the program as an administrator does on a hogged machine: in a real-time class, on
/// an RT CPU.
fn urgent(ctx: &Ctx, args: &[&str]) -> Result<()> {
    let cpu = Cpus::one(ctx.rt.first()?);
    let mut command = Command::new(&ctx.program);
    command.args(args).stdin(Stdio::null());
    let raise = move || {
        let raised = cpu.bind(0).and_then(|()| set_fifo(0, Some(URGENT.cast_signed())));
        raised.map_err(|error| std::io::Error::other(error.to_string()))
    };
    // SAFETY: between fork and exec it makes two system calls; it allocates only if one fails.
    unsafe { command.pre_exec(raise) };
    let child = command.spawn().with_context(|| format!("{args:?}"))?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let mut child = child;
    let ended =
        until(&format!("{args:?} is answered"), PATIENCE, || Ok(child.try_wait()?.is_some()));
    if ended.is_err() {
        let _ = kill(pid, Signal::SIGKILL);
    }
    let status = child.wait()?;
    ended?;
    ensure!(status.success(), "{args:?}: {status}");
    Ok(())
}

fn threads_of(pid: u32) -> Result<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    Ok(tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect())
}
