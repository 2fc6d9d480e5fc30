// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks on an RT CPU that are not bound to RT CPUs and not adopted.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::daemon::Stats;
use crate::figure::figure;
use crate::guest::{pause, run_time_ns};
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: loose real-time tasks whose time and calls on RT CPUs are not told, or RT0 tasks that are
/// taken for such.
pub const LOOSE: Scenario = Scenario {
    name: "loose",
    what: "time and calls of real-time tasks on RT CPUs that are neither bound nor adopted are told",
    scope: Scope::Both,
    boot: &[],
    secs: 14,
    host: Host::Alone,
    complaints: &[],
    run: loose,
};

/// Calls of one round of [`Kind::Call`]: statx(2), openat(2), write(2), close(2). All endanger.
const CALLS: u64 = 4;
/// Workers, in the order in which they begin.
const CALLER: usize = 1;
const SLEEPER: usize = 2;
const RT0: usize = 3;

fn loose(ctx: &Ctx) -> Result<Outcome> {
    let (nrt, rt) = (ctx.nrt.last()?, ctx.rt.first()?);
    // it is a real-time task itself
    ctx.nrt.without(Cpus::one(nrt)).bind(0)?;
    let daemon = ctx.load(&[])?;
    let spec = |kind, cpu, priority| Spec::new(kind).on(Cpus::one(cpu)).fifo(priority);
    // keeps the kernel from sending the loose ones to their NRT CPU
    let mut workers = Workers::start("loose", [spec(Kind::Spin, nrt, 90)])?;
    for (kind, priority) in [(Kind::Call, 40), (Kind::Duty, 40), (Kind::Spin, 30)] {
        let i = workers.add(spec(kind, rt, priority))?;
        workers.wait_begun()?;
        workers.freeze_one(i, true)?;
    }

    let bind = |cpus: Cpus| {
        [CALLER, SLEEPER].iter().try_for_each(|i| cpus.bind(workers.pid(*i).cast_signed()))
    };

    bind(Cpus(Cpus::one(nrt).0 | Cpus::one(rt).0))?;
    let mut stats = daemon.stats()?;
    let mut turn = |what: &str, which: &[usize]| turn(&mut stats, &workers, what, which);
    turn("the first is noted when it stops", &[CALLER])?;
    let seen = turn("calls", &[CALLER])?;
    seen.ensure_time(seen.had_ns[0])?;
    enough(seen.rounds, 50, "rounds")?;
    let made = seen.rounds * CALLS;
    figure("calls_loose", seen.calls, "calls");
    // those of the round that a stop divided
    ensure!(
        seen.calls.abs_diff(made) <= CALLS,
        "{} calls are told of, of {made} that were made",
        seen.calls
    );
    let seen = turn("in turns with an RT0 task", &[SLEEPER, RT0])?;
    ensure!(seen.had_ns[1] > seen.had_ns[0], "control: RT0 ran for {} ns only", seen.had_ns[1]);
    seen.ensure_time(seen.had_ns[0])?;

    bind(ctx.rt)?;
    for which in [&[CALLER][..], &[SLEEPER, RT0]] {
        let seen = turn("bound", which)?;
        ensure!(
            seen.told_ns == 0 && seen.calls == 0,
            "told of bound tasks: {} ns, {} calls",
            seen.told_ns,
            seen.calls
        );
    }
    drop(workers);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// What was told of a time in which some workers ran, and what the kernel says that they had.
struct Turn {
    told_ns: u64,
    calls: u64,
    had_ns: Vec<u64>,
    /// What the first of them did.
    rounds: u64,
}

impl Turn {
    /// The kernel's figure has the time from a wake-up to the switch, too, which skips an update of
    /// its clock (rq_clock_skip_update()), and may lack interrupts.
    fn ensure_time(&self, loose_ns: u64) -> Result<()> {
        figure("time_told_of_loose", self.told_ns * 100 / loose_ns.max(1), "%");
        enough(loose_ns, 50_000_000, "ns of the loose task")?;
        ensure!(
            self.told_ns.abs_diff(loose_ns) <= loose_ns / 10,
            "{} ns are told of, of {loose_ns}",
            self.told_ns
        );
        Ok(())
    }
}

/// Lets the workers run for a second, between two readings in which they stand still.
fn turn(stats: &mut Stats, workers: &Workers, what: &str, which: &[usize]) -> Result<Turn> {
    let freeze = |on| -> Result<()> {
        which.iter().try_for_each(|i| workers.freeze_one(*i, on))?;
        pause(0.2);
        Ok(())
    };
    let had = || which.iter().map(|i| run_time_ns(workers.pid(*i))).collect::<Result<Vec<_>>>();
    stats.read()?;
    let (done, before) = (workers.counts(), had()?);
    freeze(false)?;
    pause(1.0);
    freeze(true)?;
    let had_ns = had()?.iter().zip(before).map(|(now, then)| now - then).collect();
    let seen = stats.read()?;
    let told = |name: &str| {
        let found = seen.get(name).and_then(Value::as_f64);
        found.with_context(|| format!("no {name} in {seen}"))
    };
    let told_ns =
        (told("loose_pct")? * told("rt_cpus")? * told("interval_s")? * 1e7).round() as u64;
    let calls = (told("loose_calls_per_s")? * told("interval_s")?).round() as u64;
    let rounds = workers.counts()[which[0]] - done[which[0]];
    say(&format!("{what}: {told_ns} ns and {calls} calls are told of; {had_ns:?} ns, {rounds}"));
    Ok(Turn { told_ns, calls, had_ns, rounds })
}
