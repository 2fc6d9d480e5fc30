// SPDX-License-Identifier: GPL-2.0-only
//! Who is about to enter the kernel is not sent to an RT CPU.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::guest::{cpu_ticks, pause};
use crate::load::Workers;
use crate::observe::{Observer, Report};
use crate::occupancy::Occupancy;
use crate::spread::mean_cv;
use crate::worker::{Kind, Spec};

/// Catches: a prediction that sends tasks to RT CPUs which leave them at once, or keeps RT
/// CPUs empty of those that compute; evictions that cost more than the RT CPUs bring in.
pub const MIXED_PREDICT: Scenario = Scenario {
    name: "mixed_predict",
    what: "tasks that enter every 1 ms and tasks that compute: no body on RT CPUs, few wasted \
           moves, as much time in user mode as under the kernel's default",
    scope: Scope::Nightly,
    boot: &["--icount"],
    secs: 26,
    host: Host::Shared,
    complaints: &[],
    run: mixed_predict,
};

/// Of each kind, on four CPUs: twice as many tasks as CPUs.
const OF_EACH: usize = 4;
/// A move to an RT CPU is wasted if the task has to leave after less run time, ns.
const WASTED_NS: u64 = 1_000_000;
/// Wasted moves, percent of all; so few are no matter. 43 % (25 of 58) where each task is expected to
/// compute on.
const WASTED_PCT: u64 = 2;
const WASTED_FEW: u64 = 5;
const WINDOW: f64 = 4.0;
/// How often all tasks begin while moves are looked at.
const BEGINS: u64 = 5;
/// Time in user mode against the kernel's default: all that a scheduler costs, and all that it lets
/// idle, is missing in it. 1.00 was seen, and 1.12 where the default let a CPU idle; 0.50 where no task
/// is expected to compute on.
const USER: f64 = 0.97;

fn mixed_predict(ctx: &Ctx) -> Result<Outcome> {
    let kinds = [[Kind::Enter; OF_EACH], [Kind::Spin; OF_EACH]];
    let mut workers = Workers::start("mixed", kinds.into_iter().flatten().map(Spec::new))?;
    workers.wait_begun()?;
    // observers cost something at each entry: none while that is measured
    let default = measure("kernel's default", ctx, &workers)?;
    workers.freeze(true)?;
    let mut daemon = ctx.load(&[])?;
    workers.freeze(false)?;
    let artis = measure("artis", ctx, &workers)?;
    daemon.ensure_loaded("after the window")?;
    workers.freeze(true)?;
    daemon.finish()?;
    let mut bodies = Observer::attach(ctx.rt, false)?;
    let mut moves = Occupancy::attach(ctx.rt, WASTED_NS)?;
    moves.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    let mut daemon = ctx.load(&[])?;
    workers.freeze(false)?;
    pause(2.0);
    // each time RT CPUs are empty, and tasks of both kinds are there to be sent to them
    let (before, mut reports) = (moves.snapshot()?, Vec::new());
    for _ in 0..BEGINS {
        workers.freeze(true)?;
        pause(0.2);
        workers.freeze(false)?;
        reports.push(bodies.watch(1.0)?);
    }
    let seen = moves.snapshot()?.since(&before);
    daemon.ensure_loaded("after the window")?;
    let stats = daemon.stats()?.read()?;
    drop(workers);
    daemon.finish()?;

    say(&format!("artis: {}", seen.table()));
    let (moved, evicted, wasted) = seen.moves();
    say(&format!(
        "by the observer {moved} moves to RT CPUs, {evicted} evictions, {wasted} after less than \
         1 ms; by the scheduler {}",
        own_counters(&stats)
    ));
    let user = artis / default;
    say(&format!("artis to default: user mode {user:.3} (bar {USER})"));
    reports.iter().try_for_each(Report::ensure_clean)?;
    enough(moved, BEGINS, "moves to an RT CPU")?;
    ensure!(
        wasted <= WASTED_FEW.max(moved * WASTED_PCT / 100),
        "{wasted} of {moved} moves to RT CPUs were wasted"
    );
    ensure!(user >= USER, "{user:.3} of the time in user mode of the kernel's default");
    Ok(Outcome::Passed)
}

/// Part of the CPUs' time in user mode, in one window of one scheduler.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn measure(who: &str, ctx: &Ctx, workers: &Workers) -> Result<f64> {
    let ticks = || -> Result<(u64, u64)> {
        ctx.all().iter().map(cpu_ticks).try_fold((0, 0), |(user, all), t| {
            let t = t?;
            Ok((user + t.0, all + t.1))
        })
    };
    pause(1.0);
    let before = ticks()?;
    let rates = workers.rates(WINDOW);
    let after = ticks()?;
    let user = (after.0 - before.0) as f64 / (after.1 - before.1).max(1) as f64;
    let (entering, computing) = rates.split_at(OF_EACH);
    let sum = |r: &[u64]| r.iter().sum::<u64>() as f64;
    let each: Vec<f64> = computing.iter().map(|n| *n as f64).collect();
    say(&format!(
        "{who}: {:.1} % in user mode; {:.0} % of the work by the entering; CV of the computing \
         tasks' work {:.3}",
        user * 100.0,
        sum(entering) * 100.0 / sum(&rates),
        mean_cv(&each).1
    ));
    Ok(user)
}

/// What the scheduler says of the same.
fn own_counters(stats: &Value) -> String {
    let all = stats.as_object().into_iter().flatten();
    let ours = ["wasted", "evict", "taken", "place"];
    all.filter(|(name, v)| v.is_u64() && ours.iter().any(|o| name.contains(o)))
        .map(|(name, v)| format!("{name} {v}"))
        .collect::<Vec<_>>()
        .join(", ")
}
