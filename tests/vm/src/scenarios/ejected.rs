// SPDX-License-Identifier: GPL-2.0-only
//! The kernel ends the scheduler.

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest;
use crate::load::Workers;
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a daemon that goes on without a scheduler, ends as if all were well, or does not say
/// which task starved, which one held its CPU and for how long; something that is left behind.
pub const EJECTED: Scenario = Scenario {
    name: "ejected",
    what: "the kernel's watchdog ejects: exit code 4, both culprits are named, the default is back",
    // from 7.0 on the kernel's ext_server helps the starving task
    scope: Scope::First,
    boot: &["--icount"],
    secs: 25,
    host: Host::Shared,
    complaints: &["runnable task stall"],
    run: ejected,
};

/// Exit code of a daemon whose scheduler the kernel ended.
const CODE: i32 = 4;
/// Time of the watchdog, ms.
const WATCHDOG_MS: &str = "10000";
/// For so long at least the real-time task is said to have held the CPU, s: the watchdog's time less a
/// look at its tasks. 0.8 s was told where it counted anew after each of the kernel's own real-time
/// threads.
const HELD_S: f64 = 8.0;

fn ejected(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    let daemon = ctx.load(&["--adopt", "--watchdog-ms", WATCHDOG_MS])?;
    let on = Spec::new(Kind::Spin).on(Cpus::one(ctx.rt.first()?));
    let mut workers = Workers::start("starve", [on.clone(), on.fifo(10), Spec::new(Kind::Spin)])?;
    workers.wait_begun()?;
    let ended = daemon.ended()?;
    ensure!(ended.code == CODE, "exit code {}, expected {CODE}\n{}", ended.code, ended.output);
    // the kernel's words, and those of the daemon: the kernel's dump has both ids anyway
    let said = |words: String| {
        let line = ended.output.lines().find(|l| l.contains(&words)).map(str::trim);
        let line = line.with_context(|| format!("no '{words}' in\n{}", ended.output))?;
        say(line);
        anyhow::Ok(line)
    };
    said(format!("[{}] failed to run", workers.pid(0)))?;
    let held = said(format!("/{} (SCHED_FIFO) for ", workers.pid(1)))?;
    let held_s = held.rsplit(' ').nth(1).context("no time")?.parse::<f64>()?;
    ensure!(held_s >= HELD_S, "it held the CPU for {WATCHDOG_MS} ms: {held}");
    ensure!(guest::scx_state()? == "disabled", "a scheduler is in charge still");
    workers.ensure_progress(2.0, "under the kernel's default")?;
    drop(workers);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}
