// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that are real time or bound to RT CPUs and cease to be so in the midst of calls and faults.

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::guest::pause;
use crate::load::Workers;
use crate::policy::Policy;
use crate::worker::{Kind, Spec};

/// Catches: an auditor that takes for forbidden kernel work what a task had begun on an RT CPU while it
/// was real time or bound to RT CPUs.
pub const INSIDE: Scenario = Scenario {
    name: "inside",
    what: "a task becomes ordinary, or unbound, in the midst of calls and faults: nothing is found",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 10,
    host: Host::Alone,
    complaints: &[],
    run: inside,
};

const CHANGES: usize = 1000;

fn inside(ctx: &Ctx) -> Result<Outcome> {
    ctx.nrt.bind(0)?;
    let mut workers = Workers::start("inside", [Spec::new(Kind::Fork).on(ctx.all())])?;
    workers.wait_begun()?;
    let tid = workers.pid(0).cast_signed();
    let daemon = ctx.load(&[])?;
    let before = workers.counts()[0];
    for _ in 0..CHANGES {
        Policy::new(libc::SCHED_FIFO, 10).set(tid)?;
        ctx.rt.bind(tid)?;
        ctx.all().bind(tid)?;
        pause(0.001);
        Policy::new(libc::SCHED_OTHER, 0).set(tid)?;
        pause(0.001);
    }
    for _ in 0..CHANGES {
        ctx.rt.bind(tid)?;
        pause(0.001);
        ctx.nrt.bind(tid)?;
        pause(0.001);
    }
    let forked = workers.counts()[0] - before;
    say(&format!("{forked} forks beside {CHANGES} changes of the policy and as many of the CPUs"));
    ensure!(forked > 50, "control: {forked} forks");
    drop(workers);
    daemon.finish()?;
    Ok(Outcome::Passed)
}
