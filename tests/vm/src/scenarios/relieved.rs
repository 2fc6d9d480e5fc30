// SPDX-License-Identifier: GPL-2.0-only
//! A thread of the daemon that starves is a real-time one, and must not hold its CPU then.

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope};
use crate::cpus::Cpus;
use crate::guest::{PATIENCE, until};
use crate::load::Workers;
use crate::policy::Policy;
use crate::spinning::Spinning;
use crate::worker::{Kind, Spec, set_fifo};

/// Catches: a daemon that starved, and then keeps all others from the last NRT CPU for good. In the kernel
/// it may spin until one of those goes on.
pub const RELIEVED: Scenario = Scenario {
    name: "relieved",
    what: "a daemon that starved and then spins leaves its CPU to other tasks, too",
    scope: Scope::Both,
    boot: &[],
    secs: 12,
    host: Host::Alone,
    complaints: &[],
    run: relieved,
};

const NRT: u32 = 0;
const WINDOW: f64 = 3.0;

fn relieved(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(ctx.all().without(Cpus::one(NRT)))?;
    let mut daemon = ctx.load(&[])?;
    let on = |kind| Spec::new(kind).on(Cpus::one(NRT));
    let mut workers = Workers::start("beside", [Kind::Spin, Kind::Call, Kind::Sleep].map(on))?;
    workers.wait_begun()?;
    let priority = || {
        let of = Policy::of(daemon.pid().cast_signed())?;
        Ok::<_, anyhow::Error>(of.map_or(0, |policy| policy.priority))
    };
    ensure!(priority()? == 0, "it is a real-time task before it starves");
    let spinning = Spinning::begin(daemon.pid())?;
    let mut hog = Workers::start("hog", [on(Kind::Spin).fifo(98)])?;
    hog.wait_begun()?;
    until("a real-time task", PATIENCE, || Ok(priority()? > 0))?;
    // it needs the CPU to end
    set_fifo(hog.pid(0), None)?;
    workers.ensure_progress(WINDOW, "beside a daemon that spins")?;
    until("a normal task", PATIENCE, || Ok(priority()? == 0))?;
    spinning.end()?;
    daemon.ensure_loaded("when it has spun")?;
    drop((hog, workers));
    daemon.finish()?;
    Ok(Outcome::Passed)
}
