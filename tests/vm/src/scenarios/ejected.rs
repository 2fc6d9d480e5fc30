// SPDX-License-Identifier: GPL-2.0-only
//! The kernel ends the scheduler.

use anyhow::{Context, Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest;
use crate::load::Workers;
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a daemon that goes on without a scheduler, ends as if all were well, or does not say
/// which task starved and which one held its CPU; something that is left behind.
pub const EJECTED: Scenario = Scenario {
    name: "ejected",
    what: "the kernel's watchdog ejects: exit code 4, both culprits are named, the default is back",
    // from 7.0 on the kernel's ext_server helps the starving task
    scope: Scope::First,
    boot: &["--icount"],
    secs: 40,
    timed: false,
    complaints: &["runnable task stall"],
    run: ejected,
};

/// Exit code of a daemon whose scheduler the kernel ended.
const CODE: i32 = 4;

fn ejected(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let daemon = ctx.load(&["--adopt"])?;
    let on = Spec::new(Kind::Spin).on(Cpus::one(ctx.rt.first()?));
    let mut workers = Workers::start("starve", [on.clone(), on.fifo(10), Spec::new(Kind::Spin)])?;
    workers.wait_begun()?;
    let ended = daemon.ended()?;
    ensure!(ended.code == CODE, "exit code {}, expected {CODE}\n{}", ended.code, ended.output);
    // the kernel's words, and those of the daemon: the kernel's dump has both ids anyway
    let starved = format!("[{}] failed to run", workers.pid(0));
    let held = format!("/{} (SCHED_FIFO)", workers.pid(1));
    for words in [starved, held] {
        let line = ended.output.lines().find(|l| l.contains(&words));
        let line = line.with_context(|| format!("no '{words}' in\n{}", ended.output))?;
        say(line.trim());
    }
    ensure!(guest::scx_state()? == "disabled", "a scheduler is in charge still");
    workers.ensure_progress(2.0, "under the kernel's default")?;
    drop(workers);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}
