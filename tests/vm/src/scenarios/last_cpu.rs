// SPDX-License-Identifier: GPL-2.0-only
//! The last NRT CPU goes offline: of a group, of the tasks in its queue, of the machine.

use anyhow::{Result, ensure};

use super::hotplug::{set_online, switch};
use super::{Ctx, Host, Outcome, Scenario, Scope};
use crate::cpus::Cpus;
use crate::daemon::Ended;
use crate::guest;
use crate::kernel_log::KernelLog;
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: tasks that wait for an NRT CPU when the kernel has it dispatch no more. It
/// waits for a grace period of RCU then, and the thread that ends one may be among these tasks; a
/// daemon that does not end when no NRT CPU is left.
pub const LAST_CPU: Scenario = Scenario {
    name: "last_cpu",
    what: "NRT CPUs go and come that are the last one of a socket, of a task, and of the machine",
    scope: Scope::First,
    boot: &["--topology", "sockets=2"],
    secs: 60,
    host: Host::Alone,
    complaints: &[BY_BPF], // of_machine()
    run: last_cpu,
};

/// How the kernel tells that the scheduler ended itself: at once, before a task that may not run on RT
/// CPUs has no CPU.
const BY_BPF: &str = "disabled (unregistered from BPF)";
/// The CPU of the second socket that goes.
const GOES: u32 = 2;
const TURNS: usize = 3;
const WINDOW: f64 = 2.0;

fn last_cpu(ctx: &Ctx) -> Result<Outcome> {
    // the only NRT CPU of its socket; to some tasks only the RT CPU is left
    goes(&ctx.with_rt(Cpus(0b1010))?, Cpus(0b1100))?;
    // CPU 3 takes from the same queue, but not these tasks
    goes(&ctx.with_rt(Cpus(0b0010))?, Cpus(0b0101))?;
    of_machine(&ctx.with_rt(ctx.all().without(Cpus::one(3)))?)?;
    Ok(Outcome::Passed)
}

fn goes(ctx: &Ctx, bound_to: Cpus) -> Result<()> {
    let mut daemon = ctx.load(&[])?;
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    let specs = [Spin, Spin, Spin, Spin, Call, Call, Sleep, Fork, Touch].map(Spec::new);
    let bound = [Spin, Call, Call, Touch].map(|kind| Spec::new(kind).on(bound_to));
    let mut workers = Workers::start("last", specs.into_iter().chain(bound))?;
    workers.wait_begun()?;
    let seq = guest::enable_seq()?;
    for turn in 1..=TURNS {
        for online in [false, true] {
            switch(ctx, &mut daemon, GOES, online)?;
        }
        workers.ensure_progress(WINDOW, &format!("after {turn} times"))?;
    }
    ensure!(guest::enable_seq()? == seq, "the scheduler was started anew");
    drop(workers);
    daemon.finish()?;
    Ok(())
}

fn of_machine(ctx: &Ctx) -> Result<()> {
    let daemon = ctx.load(&[])?;
    let mut workers = Workers::start("left", [Kind::Spin, Kind::Call, Kind::Sleep].map(Spec::new))?;
    workers.wait_begun()?;
    let mut log = KernelLog::from_now()?;
    set_online(3, false)?;
    let Ended { code, output } = daemon.ended()?;
    ensure!(code == 2, "exit code {code}, 2 was expected\n{output}");
    ensure!(log.drain().iter().any(|line| line.contains(BY_BPF)), "not by itself\n{output}");
    workers.ensure_progress(WINDOW, "when the scheduler is gone")?;
    set_online(3, true)
}
