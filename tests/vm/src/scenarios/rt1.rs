// SPDX-License-Identifier: GPL-2.0-only
//! RT1+: firm real-time tasks by strict priority, on RT CPUs where they may be.

use anyhow::{Result, ensure};

use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::figure::figure;
use crate::guest::pause;
use crate::load::Workers;
use crate::observe::Observer;
use crate::occupancy::Occupancy;
use crate::spread::Snapshot;
use crate::worker::{Kind, Spec};

/// Catches: an RT1+ task that waits while a lower one or an NRT task runs; a budget that does not
/// bite or starves RT1+ tasks; a change of class that is not taken; turns that are none.
pub const RT1_ORDER: Scenario = Scenario {
    name: "rt1_order",
    what: "RT1+ tasks by strict priority before all others, within the budget; turns",
    scope: Scope::Both,
    boot: &["--icount=1"],
    secs: 20,
    host: Host::Shared,
    complaints: &[],
    run: order,
};

/// Catches: an RT1+ task that stays on NRT CPUs or goes on in the kernel on an RT CPU; one that
/// holds up RT0.
pub const RT1_PLACES: Scenario = Scenario {
    name: "rt1_places",
    what: "a periodic RT1+ task runs on RT CPUs, beside RT0 and twice as many NRT tasks as CPUs",
    scope: Scope::Both,
    boot: &["--icount"],
    secs: 20,
    host: Host::Shared,
    complaints: &[],
    run: places,
};

/// Of a CPU's time, percent.
const BUDGET_PCT: u64 = 90;
/// Highest first; one more than there are CPUs, and two.
const RANKS: [u32; 6] = [60, 50, 40, 30, 20, 10];
/// Each of the highest gets what the budget leaves, in parts of a CPU: 0.89 to 1.00 were seen, and
/// 0.06 with the order turned round.
const HIGH: f64 = 0.85;
/// The two lowest together: a lower RT1+ task runs in no time that the budget leaves to others.
/// 0.00 to 0.03 were seen, and 1.81 with the order turned round.
const LOW: f64 = 0.05;
/// All NRT tasks together get most of what the budget takes from the two NRT CPUs, 0.20 of a CPU;
/// on RT CPUs it is for those that wait there. 0.20 was seen in each of 10 runs. Without a budget they
/// have none of it: the daemon does not answer any more.
const NRT: f64 = 0.18;

fn set(ctx: &Ctx, pid: u32, rank: u32, rr: bool) -> Result<()> {
    let (pid, rank) = (pid.to_string(), rank.to_string());
    let mut args = vec!["class", &pid, "--class", "rt1", "--priority", &rank];
    args.extend(rr.then_some("--rr"));
    told(ctx, &args, 0).map(drop)
}

/// What each of the watched tasks had of a CPU meanwhile.
fn shares(seen: &Snapshot) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "parts of a CPU")]
    seen.tasks.iter().map(|t| t.total_ns() as f64 / seen.at_ns as f64).collect()
}

fn watch(observer: &mut Occupancy, secs: f64, what: &str) -> Result<Vec<f64>> {
    let shares = shares(&observer.over(secs)?);
    let text: Vec<String> = shares.iter().map(|share| format!("{share:.2}")).collect();
    say(&format!("{what}: {}", text.join(" ")));
    Ok(shares)
}

fn order(ctx: &Ctx) -> Result<Outcome> {
    let cpus = ctx.all().iter().count();
    ensure!(cpus == 4, "this needs four CPUs, here are {cpus}");
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut daemon = ctx.load(&["--rt1-budget-pct", &BUDGET_PCT.to_string()])?;
    let firm = RANKS.map(|_| Spec::new(Kind::Spin));
    let mut workers =
        Workers::start("firm", firm.into_iter().chain([Kind::Spin; 4].map(Spec::new)))?;
    workers.wait_begun()?;
    observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    // stopped: the program that sets a class is an NRT task, which waits beneath them. The lowest
    // first: each higher one has to take a CPU from somebody
    workers.freeze(true)?;
    for (i, rank) in RANKS.iter().enumerate().rev() {
        set(ctx, workers.pid(i), *rank, false)?;
    }
    for i in (0..workers.len()).rev() {
        workers.freeze_one(i, false)?;
    }
    pause(1.0);
    let mut stats = daemon.stats()?;
    let throttled = stats.counter("rt1_throttled")?;
    let seen = watch(&mut observer, 4.0 * SECOND_S, "60 50 40 30 20 10, then four NRT")?;
    let throttled = stats.counter("rt1_throttled")? - throttled;
    say(&format!("the budget was used up {throttled} times"));
    daemon.ensure_loaded("under RT1+ tasks without end")?;
    let sum = |shares: &[f64]| shares.iter().sum::<f64>();
    let high = seen[..4].iter().copied().fold(f64::INFINITY, f64::min);
    figure("high_least", format!("{high:.2}"), "CPUs");
    figure("low_together", format!("{:.2}", sum(&seen[4..6])), "CPUs");
    figure("nrt_together", format!("{:.2}", sum(&seen[6..])), "CPUs");
    ensure!(seen[..4].iter().all(|share| *share >= HIGH), "a high one waited: {seen:?}");
    ensure!(sum(&seen[4..6]) <= LOW, "the low ones ran meanwhile: {seen:?}");
    ensure!(sum(&seen[6..]) >= NRT, "NRT tasks starve: {seen:?}");
    ensure!(throttled >= 4, "the budget was used up {throttled} times");

    // somebody high goes: the next one takes its place
    workers.freeze_one(1, true)?;
    let seen = watch(&mut observer, 2.0, "without 50")?;
    ensure!([0, 2, 3, 4].iter().all(|i| seen[*i] >= HIGH), "a high one waited: {seen:?}");
    ensure!(seen[5] <= LOW, "the lowest ran meanwhile: {seen:?}");
    workers.freeze_one(1, false)?;

    // the lowest becomes the highest while it waits
    set(ctx, workers.pid(5), 70, false)?;
    let seen = watch(&mut observer, 2.0, "10 is 70")?;
    ensure!([5, 0, 1, 2].iter().all(|i| seen[*i] >= HIGH), "a high one waited: {seen:?}");
    drop(workers);
    turns(ctx, &mut observer)?;
    passed_by(ctx, &mut observer)?;
    used_up(ctx, &mut observer)?;
    goes_on(ctx, &mut observer)?;
    daemon.ensure_loaded("at the end")?;
    drop(stats);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Equals that may run on one CPU only: the first has it, or they take turns.
fn turns(ctx: &Ctx, observer: &mut Occupancy) -> Result<()> {
    let on = Cpus::one(ctx.nrt.first()?);
    for rr in [false, true] {
        let mut workers =
            Workers::start("equal", [Spec::new(Kind::Spin).on(on), Spec::new(Kind::Spin).on(on)])?;
        workers.wait_begun()?;
        let first = observer.watch((0..2).map(|i| workers.pid(i)))?;
        workers.freeze(true)?;
        for i in 0..2 {
            set(ctx, workers.pid(i), 30, rr)?;
        }
        workers.freeze(false)?;
        pause(0.5);
        let seen = watch(observer, 2.0, if rr { "equals in turns" } else { "equals" })?;
        let (one, other) = (seen[first].max(seen[first + 1]), seen[first].min(seen[first + 1]));
        if rr {
            ensure!(other >= 0.9 * one && one > 0.45, "no turns: {one:.2} and {other:.2}");
        } else {
            ensure!(other <= LOW && one >= HIGH, "FIFO tasks took turns: {one:.2}, {other:.2}");
        }
    }
    Ok(())
}

/// A task that waits for other CPUs, before all others in a queue that this CPU takes from, too: an RT1+
/// task bound here runs meanwhile, and no NRT task. It had 0.00 of its CPU where that CPU went by the
/// order of the waiting one.
fn passed_by(ctx: &Ctx, observer: &mut Occupancy) -> Result<()> {
    let here = Cpus::one(ctx.rt.first()?);
    let others = Cpus(Cpus::one(ctx.rt.last()?).0 | Cpus::one(ctx.nrt.last()?).0);
    let free = [Kind::Spin; 3].map(Spec::new);
    let specs = [others, others, others, here].map(|cpus| Spec::new(Kind::Spin).on(cpus));
    let mut workers = Workers::start("passed", specs.into_iter().chain(free))?;
    workers.wait_begun()?;
    let first = observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    workers.freeze(true)?;
    for (i, rank) in [70, 70, 60, 50].into_iter().enumerate() {
        set(ctx, workers.pid(i), rank, false)?;
    }
    // the third runs, and then is displaced: one that has only been woken is none that computes on
    for i in (0..workers.len()).rev() {
        workers.freeze_one(i, false)?;
        pause(0.2);
    }
    let seen = watch(observer, SECOND_S, "70 70 60 for two CPUs, 50 for another one, three NRT")?;
    ensure!(seen[first + 3] >= HIGH, "the lower one had {:.2} of its CPU", seen[first + 3]);
    Ok(())
}

/// The second of the budget, 2^30 ns (policy/fair.h). What a task gets in a whole number of
/// them does not depend on where they begin.
const SECOND_S: f64 = 1.073_741_824;
/// So often a task of priority 60 stops after having used up its CPU's second.
/// The rounds begin at points of that second (2^30 ns) that are 0.17 s apart.
const ROUNDS: u32 = 7;
const USES_S: f64 = 0.4;
const WINDOW_S: f64 = 0.5;
const USED_UP_PCT: u32 = 30;

/// An RT CPU whose second is used up runs a low RT1+ task, since no NRT task waits for it. A higher
/// one that has to leave its own CPU to an NRT task takes the place of the low one: it had 0.99 and
/// more of a CPU, and 0.64 where it waited beside the low one for the second to end.
fn used_up(ctx: &Ctx, observer: &mut Occupancy) -> Result<()> {
    let (used, other) = (Cpus::one(ctx.rt.first()?), Cpus::one(ctx.nrt.first()?));
    told(ctx, &["set", "rt1-budget-pct", &USED_UP_PCT.to_string()], 0)?;
    let masks = [used, Cpus(used.0 | other.0), used, other];
    let specs = masks.map(|cpus| Spec::new(Kind::Spin).on(cpus));
    let mut workers = Workers::start("used", specs)?;
    workers.wait_begun()?;
    let first = observer.watch((0..4).map(|i| workers.pid(i)))?;
    for (i, rank) in [60, 50, 10].into_iter().enumerate() {
        set(ctx, workers.pid(i), rank, false)?;
    }
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        workers.freeze_one(1, true)?;
        pause(USES_S);
        workers.freeze_one(1, false)?;
        workers.freeze_one(0, true)?;
        let seen = watch(observer, WINDOW_S, "50 beside 10, whose CPU is used up")?;
        workers.freeze_one(0, false)?;
        least = least.min(seen[first + 1]);
    }
    figure("high_beside_low", format!("{least:.2}"), "CPUs");
    ensure!(least >= HIGH, "the higher one had {least:.2} of a CPU while a lower one ran");
    told(ctx, &["set", "rt1-budget-pct", "95"], 0)?;
    Ok(())
}

/// One that is alone on an NRT CPU and may not use the idle RT CPU, but one where a higher one computes,
/// goes on where it is. It had 0.99 and more of a CPU, and 0.76 where its CPU is not woken once the task is
/// back in the queue.
fn goes_on(ctx: &Ctx, observer: &mut Occupancy) -> Result<()> {
    let (rt, nrt) = (Cpus::one(ctx.rt.first()?), Cpus::one(ctx.nrt.first()?));
    let specs = [rt, Cpus(rt.0 | nrt.0)].map(|cpus| Spec::new(Kind::Spin).on(cpus));
    let mut workers = Workers::start("goes-on", specs)?;
    workers.wait_begun()?;
    let first = observer.watch((0..2).map(|i| workers.pid(i)))?;
    for (i, rank) in [60, 30].into_iter().enumerate() {
        set(ctx, workers.pid(i), rank, false)?;
    }
    pause(0.5);
    let seen = watch(observer, 2.0, "30 on an NRT CPU, 60 on the only RT CPU that it may use")?;
    ensure!(seen[first + 1] >= 0.95, "it had {:.2} of its CPU", seen[first + 1]);
    Ok(())
}

/// The least share of its time that a periodic RT1+ task is on RT CPUs: 0.998 and more was seen; on
/// PREEMPT_RT 0.947 to 1.000 where it waited in the queue of its group for the end of the thread that
/// woke it, 0.70 to 0.76 where it waited behind what that thread had preempted.
const ON_RT_MIN: f64 = 0.98;

/// In the window of 5 s; work is counted in units of computing.
const PERIODS: u64 = 1000;

fn places(ctx: &Ctx) -> Result<Outcome> {
    let mut bodies = Observer::attach(ctx.rt, false)?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut daemon = ctx.load(&[])?;
    let mut rt0 = Spec::new(Kind::Duty).on(Cpus::one(ctx.rt.first()?)).fifo(50);
    rt0.duty = 25;
    let nrt = [
        Kind::Spin,
        Kind::Spin,
        Kind::Spin,
        Kind::Spin,
        Kind::Enter,
        Kind::Enter,
        Kind::Call,
        Kind::Mixed,
    ];
    let specs = [Spec::new(Kind::Periodic), rt0].into_iter().chain(nrt.map(Spec::new));
    let mut workers = Workers::start("firm", specs)?;
    workers.wait_begun()?;
    observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    set(ctx, workers.pid(0), 40, false)?;
    // this process is a FIFO task, too: on an RT CPU it would send the RT1+ task to an NRT CPU
    ctx.nrt.bind(0)?;
    pause(3.0);
    let before = observer.snapshot()?;
    let counted = workers.counts();
    let report = bodies.watch(5.0)?;
    let counts: Vec<_> = counted.into_iter().zip(workers.counts()).collect();
    let seen = observer.snapshot()?.since(&before);
    daemon.ensure_loaded("after the window")?;
    for (i, task) in seen.tasks.iter().enumerate().take(1) {
        let part = task.part_on(ctx.rt);
        say(&format!(
            "RT1+ {i}: {} ms, {:.1} % of it on RT CPUs, {} moves there, {} evictions",
            task.total_ns() / 1_000_000,
            part * 100.0,
            task.moves,
            task.evictions
        ));
        figure("on_rt_cpus", format!("{:.1}", part * 100.0), "%");
        let periods = counts[i].1 - counts[i].0;
        ensure!(periods * 10 >= PERIODS * 8, "RT1+ {i} did {periods} of its {PERIODS} periods");
        ensure!(part >= ON_RT_MIN, "RT1+ {i} ran on RT CPUs for {:.1} % of its time", part * 100.0);
    }
    ensure!(
        report.rt.endangering + report.rt.faults == 0,
        "{} bodies, {} faults on RT CPUs\n{}",
        report.rt.endangering,
        report.rt.faults,
        report.culprits()
    );
    comes_back(ctx, &mut observer, &workers)?;
    let own = seen.tasks[1].total_ns() * 100 / seen.at_ns.max(1);
    ensure!(own >= 20, "RT0 beside them got {own} % instead of 25");
    drop(workers);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// So often the RT1+ task comes from an NRT CPU, where the timer that wakes it is.
const COMES: usize = 5;
/// The least share of its time on RT CPUs after each of them: 0.960 and more was seen; 0.00 to 0.16 where
/// it does not take an RT CPU from an NRT task.
const BACK_MIN: f64 = 0.9;

/// An RT1+ task that was bound to an NRT CPU and no longer is goes to an RT CPU, though none is idle.
fn comes_back(ctx: &Ctx, observer: &mut Occupancy, workers: &Workers) -> Result<()> {
    let firm = workers.pid(0).cast_signed();
    let mut least = f64::INFINITY;
    for _ in 0..COMES {
        Cpus::one(ctx.nrt.first()?).bind(firm)?;
        pause(0.05);
        ctx.all().bind(firm)?;
        let part = observer.over(0.5)?.tasks[0].part_on(ctx.rt);
        say(&format!("unbound from an NRT CPU: {:.1} % of its time on RT CPUs", part * 100.0));
        least = least.min(part);
    }
    ensure!(least >= BACK_MIN, "it stays away from RT CPUs: {:.1} %", least * 100.0);
    Ok(())
}
