// SPDX-License-Identifier: GPL-2.0-only
//! Every task gets to run, and gets its share.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cgroup::Cgroup;
use crate::cpus::Cpus;
use crate::guest::{PATIENCE, pause, run_time_ns, until, wait_time_ns};
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: a queue that nobody takes from, a task left in the local queue of
/// a CPU that is kept busy, a kick that is forgotten, virtual time that
/// starves the ones with a low weight; a task that sleeps and counts as one that could run.
pub const EVERYONE_RUNS: Scenario = Scenario {
    name: "everyone_runs",
    what: "38 tasks of all kinds, priorities and affinities progress in each window of 5 s, two of \
           nice 19 in time",
    scope: Scope::Both,
    boot: &[],
    secs: 18,
    host: Host::Timed,
    complaints: &[],
    run: everyone_runs,
};

fn everyone(ctx: &Ctx) -> Result<Vec<Spec>> {
    use Kind::{Call, Exec, Fork, Lock, Sleep, Spin, Thread, Touch};
    let mut all = Vec::new();
    for nice in [-10, -5, 0, 0, 5, 10] {
        all.push(Spec::new(Spin).nice(nice));
        all.push(Spec::new(Call).nice(nice));
    }
    for cpu in ctx.all().iter() {
        all.push(Spec::new(Spin).on(Cpus::one(cpu)));
        all.push(Spec::new(Call).on(Cpus::one(cpu)));
        all.push(Spec::new(Sleep).on(Cpus::one(cpu)));
    }
    for set in [ctx.rt, ctx.nrt] {
        all.extend([Spin, Touch].map(|k| Spec::new(k).on(set)));
    }
    all.extend([Sleep, Sleep, Sleep, Fork, Fork, Exec, Thread, Lock, Lock, Touch].map(Spec::new));
    ensure!(all.len() >= 38 || ctx.all().iter().count() < 4, "only {} tasks", all.len());
    Ok(all)
}

fn everyone_runs(ctx: &Ctx) -> Result<Outcome> {
    let mut workers = Workers::start("everyone", everyone(ctx)?)?;
    // 6 ms in a window are theirs: one turn in two windows
    let mut light =
        Workers::start("light", [Kind::Spin, Kind::Call].map(|k| Spec::new(k).nice(19)))?;
    workers.wait_begun()?;
    light.wait_begun()?;
    least("the kernel's default", &workers, 2.0);
    workers.freeze(true)?;
    light.freeze(true)?;
    let mut daemon = ctx.load(&[])?;
    let begun = light.counts();
    workers.freeze(false)?;
    light.freeze(false)?;
    say("artis is loaded, all go on");
    for window in 1..=2 {
        workers.ensure_progress(5.0, &format!("in window {window}"))?;
        say(&format!("window {window} is over"));
        daemon.ensure_loaded(&format!("after window {window}"))?;
    }
    for (i, begun) in begun.into_iter().enumerate() {
        until("tasks of nice 19 progress", PATIENCE, || Ok(light.counts()[i] > begun))?;
    }
    daemon.ensure_loaded("after tasks of nice 19 ran")?;
    // here: at the end the kernel takes each task, and its weight, from the scheduler
    workers.freeze(true)?;
    light.freeze(true)?;
    daemon.stats()?.wait_weightless()?;
    drop((workers, light));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Who gets least.
fn least(who: &str, workers: &Workers, secs: f64) {
    let rates = workers.rates(secs);
    let mut order: Vec<usize> = (0..rates.len()).collect();
    order.sort_by_key(|i| rates[*i]);
    let worst: Vec<String> = order
        .iter()
        .take(5)
        .map(|i| format!("{} {}", workers.spec(*i).name(), rates[*i]))
        .collect();
    say(&format!("{who}, least work in {secs} s: {}", worst.join(", ")));
}

/// Catches: weights that are read once, not at all, or the wrong way round;
/// for a queue that several CPUs share, for that of one CPU, for cgroups. A task that goes
/// on after a real-time task although its slice is over. One that may not use RT CPUs, and comes last
/// for what others have there. A woken task that waits where no task may use RT CPUs.
pub const WEIGHTS: Scenario = Scenario {
    name: "weights",
    what: "nice and cpu.weight show in the work that is done",
    scope: Scope::First,
    boot: &["--icount=1"],
    secs: 25,
    host: Host::Shared,
    complaints: &[],
    run: weights,
};

/// Length of a measured phase, and of what comes before.
const PHASE: f64 = 3.0;
const SETTLE: f64 = 0.5;
/// The longest wait of a task of nice 19 among twenty of nice 0, s: one tick of 4 ms ages it by 160 ms
/// of a clock that twenty tasks on two CPUs have turn at a tenth. 4.0 where a tick ages it by 400 ms.
const LIGHT_WAIT_MAX: f64 = 2.5;
/// The least part of a CPU for a task of nice -20 beside tasks of nice 0, which have a 88th of its weight.
/// 0.3 where it comes last for what other calm tasks have on RT CPUs.
const HEAVY_MIN: f64 = 0.8;
/// The longest mean wait of a woken task among four that compute, ms: a third of a slice.
const WOKEN_WAIT_MAX: f64 = 1.0;

fn weights(ctx: &Ctx) -> Result<Outcome> {
    say("the kernel's default, to compare:");
    nice(ctx)?;
    cgroups(ctx)?;
    let mut daemon = ctx.load(&[])?;
    say("artis:");
    let (shared, own) = nice(ctx)?;
    daemon.ensure_loaded("after nice")?;
    say("with a FIFO task on each CPU that runs while each tick is due:");
    let ticks = ctx.all().iter().map(|cpu| Spec::new(Kind::Tick).fifo(50).on(Cpus::one(cpu)));
    let mut ticks = Workers::start("ticks", ticks)?;
    ticks.wait_begun()?;
    let before = ticks.counts();
    let (shared_ticks, own_ticks) = nice(ctx)?;
    for (now, before) in ticks.counts().iter().zip(&before) {
        enough(now - before, 100, "ticks")?;
    }
    drop(ticks);
    daemon.ensure_loaded("after nice with ticks")?;
    let wait = light(ctx)?;
    ensure!(wait < LIGHT_WAIT_MAX, "a task of nice 19 waited for {wait:.2} s");
    let heavy = heavy(ctx)?;
    ensure!(heavy > HEAVY_MIN, "a task of nice -20 has {heavy:.2} of a CPU");
    let woken = woken(ctx)?;
    ensure!(woken < WOKEN_WAIT_MAX, "a woken task waits for {woken:.2} ms");
    let group = cgroups(ctx)?;
    daemon.ensure_loaded("after cpu.weight")?;
    // nice 10 has weight 110 to 1024 of nice 0; the scheduler sees 10 to 100. A scheduler that took
    // the square root of weights would give 3.2 and 2, and one that ignores them gives 0.98 and 1.00
    within("nice 0 to nice 10, NRT CPUs", shared, 8.0, 11.0)?;
    within("nice 0 to nice 10, one RT CPU", own, 8.0, 11.0)?;
    within("nice 0 to nice 10, NRT CPUs, with ticks", shared_ticks, 8.0, 11.0)?;
    within("nice 0 to nice 10, one RT CPU, with ticks", own_ticks, 8.0, 11.0)?;
    within("cpu.weight 400 to 100", group, 3.5, 4.5)?;
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Work of nice 0 over that of nice 10: of tasks on the NRT CPUs, and of tasks
/// bound to one RT CPU.
fn nice(ctx: &Ctx) -> Result<(f64, f64)> {
    let spin = |cpus, nice| Spec::new(Kind::Spin).on(cpus).nice(nice);
    let own = Cpus::one(ctx.rt.last()?);
    let specs = [
        [spin(ctx.nrt, 0), spin(ctx.nrt, 0), spin(ctx.nrt, 0), spin(own, 0)],
        [spin(ctx.nrt, 10), spin(ctx.nrt, 10), spin(ctx.nrt, 10), spin(own, 10)],
    ];
    let mut workers = Workers::start("nice", specs.into_iter().flatten())?;
    workers.wait_begun()?;
    pause(SETTLE);
    let r = workers.rates(PHASE);
    Ok((
        shares("nice 0 to nice 10, NRT CPUs", r[..3].iter().sum(), r[4..7].iter().sum()),
        shares("nice 0 to nice 10, one RT CPU", r[3], r[7]),
    ))
}

/// The longest wait of a task of nice 19 among many, s.
fn light(ctx: &Ctx) -> Result<f64> {
    let spin = |nice| Spec::new(Kind::Spin).on(ctx.nrt).nice(nice);
    let mut workers = Workers::start("light", (0..21).map(|i| spin(if i == 0 { 19 } else { 0 })))?;
    workers.wait_begun()?;
    let begun = Instant::now();
    let (mut ran_ns, mut since, mut longest) = (0, begun, 0.0_f64);
    while begun.elapsed().as_secs_f64() < 2.0 * LIGHT_WAIT_MAX {
        let now_ns = run_time_ns(workers.pid(0))?;
        if now_ns != ran_ns {
            (ran_ns, since) = (now_ns, Instant::now());
        }
        longest = longest.max(since.elapsed().as_secs_f64());
        pause(0.01);
    }
    say(&format!("  nice 19 among twenty of nice 0: waits for {longest:.2} s at most"));
    Ok(longest)
}

/// The part of a CPU that a calm task of nice -20 has on the NRT CPUs, beside one that enters the kernel;
/// others, of nice 0, may use the RT CPUs, too.
fn heavy(ctx: &Ctx) -> Result<f64> {
    let heavy = [Kind::Spin, Kind::Call].map(|kind| Spec::new(kind).on(ctx.nrt).nice(-20));
    let others = [[Kind::Call; 4], [Kind::Spin; 4], [Kind::Spin; 4], [Kind::Spin; 4]];
    let others = others.into_iter().flatten().map(Spec::new);
    let mut workers = Workers::start("heavy", heavy.into_iter().chain(others))?;
    workers.wait_begun()?;
    pause(SETTLE);
    let (began, before_ns) = (Instant::now(), run_time_ns(workers.pid(0))?);
    pause(PHASE);
    let ran_ns = run_time_ns(workers.pid(0))? - before_ns;
    let part = ran_ns as f64 / began.elapsed().as_nanos() as f64;
    say(&format!("  nice -20 on NRT CPUs: {part:.2} of a CPU"));
    Ok(part)
}

/// The mean wait of a task that sleeps again and again, all bound to the NRT CPUs, ms.
fn woken(ctx: &Ctx) -> Result<f64> {
    let kinds = [Kind::Sleep, Kind::Spin, Kind::Spin, Kind::Spin, Kind::Spin];
    let mut workers = Workers::start("woken", kinds.map(|kind| Spec::new(kind).on(ctx.nrt)))?;
    workers.wait_begun()?;
    pause(SETTLE);
    let had = || anyhow::Ok((wait_time_ns(workers.pid(0))?, workers.counts()[0]));
    let before = had()?;
    pause(PHASE);
    let (waited_ns, times) = had()?;
    let wait = (waited_ns - before.0) as f64 / (times - before.1) as f64 / 1e6;
    say(&format!("  woken among four that compute: waits for {wait:.2} ms"));
    Ok(wait)
}

/// Work of a heavy cgroup over that of a light one.
fn cgroups(ctx: &Ctx) -> Result<f64> {
    let (light, heavy) =
        (Cgroup::with_weight("artis-light", 100)?, Cgroup::with_weight("artis-heavy", 400)?);
    let member = |g: &Cgroup| {
        let mut s = Spec::new(Kind::Spin).on(ctx.nrt);
        s.cgroup = Some(g.procs());
        s
    };
    let specs = [&heavy, &heavy, &heavy, &light, &light, &light].map(member);
    let mut workers = Workers::start("cgroup", specs)?;
    workers.wait_begun().context("workers in cgroups")?;
    pause(SETTLE);
    let r = workers.rates(PHASE);
    Ok(shares("cpu.weight 400 to 100", r[..3].iter().sum(), r[3..].iter().sum()))
}

#[expect(clippy::cast_precision_loss, reason = "a ratio")]
fn shares(what: &str, more: u64, less: u64) -> f64 {
    let ratio = more as f64 / less.max(1) as f64;
    say(&format!("  {what}: {more} to {less}, {ratio:.2}"));
    ratio
}

fn within(what: &str, ratio: f64, min: f64, max: f64) -> Result<()> {
    ensure!((min..=max).contains(&ratio), "{what}: {ratio:.2}, expected {min} to {max}");
    Ok(())
}
