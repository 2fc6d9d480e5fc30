// SPDX-License-Identifier: GPL-2.0-only
//! The last NRT CPU of a group, or of the machine, goes offline.

use anyhow::{Result, ensure};

use super::hotplug::{set_online, switch};
use super::{Ctx, Host, Outcome, Scenario, Scope};
use crate::cpus::Cpus;
use crate::daemon::Ended;
use crate::guest;
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: tasks of a group that wait for its NRT CPU when the kernel has it dispatch no more. It
/// waits for a grace period of RCU then, and the thread that ends one may be among these tasks; a
/// daemon that does not end when no NRT CPU is left.
pub const LAST_CPU: Scenario = Scenario {
    name: "last_cpu",
    what: "the only NRT CPU of a socket goes and comes three times; that of the machine goes",
    scope: Scope::First,
    boot: &["--topology", "sockets=2"],
    secs: 40,
    host: Host::Shared,
    // of_machine()
    complaints: &["disabled (unregistered from BPF)"],
    run: last_cpu,
};

/// One of each socket; 0 and 2 are the NRT CPUs.
const RT: Cpus = Cpus(0b1010);
const TURNS: usize = 3;
const WINDOW: f64 = 2.0;

fn last_cpu(ctx: &Ctx) -> Result<Outcome> {
    of_group(&ctx.with_rt(RT)?)?;
    of_machine(&ctx.with_rt(ctx.all().without(Cpus::one(3)))?)?;
    Ok(Outcome::Passed)
}

fn of_group(ctx: &Ctx) -> Result<()> {
    let mut daemon = ctx.load(&[])?;
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    let specs = [Spin, Spin, Spin, Spin, Call, Call, Sleep, Fork, Touch].map(Spec::new);
    // of this socket only: the RT CPU is all that is left to them
    let bound = [Spin, Call, Touch].map(|kind| Spec::new(kind).on(Cpus(0b1100)));
    let mut workers = Workers::start("last", specs.into_iter().chain(bound))?;
    workers.wait_begun()?;
    let seq = guest::enable_seq()?;
    for turn in 1..=TURNS {
        for online in [false, true] {
            switch(ctx, &mut daemon, 2, online)?;
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
    set_online(3, false)?;
    let Ended { code, output } = daemon.ended()?;
    ensure!(code == 2, "exit code {code}, 2 was expected\n{output}");
    workers.ensure_progress(WINDOW, "when the scheduler is gone")?;
    set_online(3, true)
}
