// SPDX-License-Identifier: GPL-2.0-only
//! How long a task that could run has to wait at most.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::figure::compared;
use crate::guest::{PATIENCE, pause, until};
use crate::load::{Load, Workers};
use crate::work::grace_period;
use crate::worker::{Kind, Spec};

/// Catches: a light task that starves beneath a stream of new and woken ones: whoever it
/// holds a lock for, or a grace period of RCU, waits with it.
pub const FORK_STORM_WAITS: Scenario = Scenario {
    name: "fork_storm_waits",
    what: "in a storm of forks no task waits long, nice 19 included: bound to NRT CPUs, or evicted",
    scope: Scope::First,
    boot: &[],
    secs: 31,
    host: Host::Timed,
    complaints: &[],
    run: fork_storm_waits,
};

/// A wait that needs no explanation in emulation on a shared machine.
const HARMLESS: Duration = Duration::from_secs(1);
/// Else, times the longest wait under the kernel's default.
const FACTOR: u32 = 5;
/// The first ones are bound to NRT CPUs, and what they wait is compared.
const BOUND: usize = 2;
/// The storm comes in bursts: a task that computes alone in a lull is ahead of its share then.
const BURSTS: u32 = 4;
const BURST: f64 = 2.0;
const LULL: f64 = 0.5;

fn fork_storm_waits(ctx: &Ctx) -> Result<Outcome> {
    let bound = |nice| Spec::new(Kind::Spin).on(ctx.nrt).nice(nice);
    let specs = [bound(19), bound(0), Spec::new(Kind::Mixed).nice(19), Spec::new(Kind::Mixed)];
    let mut workers = Workers::start("waits", specs.clone().map(Spec::clocked))?;
    workers.wait_begun()?;
    let mut loads = vec![Load::stress("--fork 4")?, Load::hackbench()?, Load::hackbench()?];
    let freeze_all_but_bound = |on| {
        (BOUND..specs.len()).try_for_each(|i| workers.freeze_one(i, on))?;
        loads.iter().try_for_each(|l| l.freeze(on))
    };
    let storm = || {
        (0..BURSTS).try_for_each(|_| {
            freeze_all_but_bound(true)?;
            pause(LULL);
            freeze_all_but_bound(false)?;
            pause(BURST);
            // before the next lull, where each has a CPU
            all_move(&workers, BOUND)
        })
    };
    let (default, ()) = longest("kernel's default", &workers, storm)?;
    freeze(&workers, &loads, true)?;
    let mut daemon = ctx.load(&[])?;
    freeze(&workers, &loads, false)?;
    let (artis, ()) = longest("artis", &workers, storm)?;
    daemon.ensure_loaded("in the storm")?;
    for l in &mut loads {
        l.ensure_runs()?;
    }
    drop((workers, loads));
    daemon.finish()?;
    for (task, (artis, default)) in
        ["nice 19", "nice 0"].into_iter().zip(artis.into_iter().zip(default))
    {
        ensure_short(task, artis, default)?;
    }
    Ok(Outcome::Passed)
}

fn ensure_short(task: &str, wait: Duration, default: Duration) -> Result<()> {
    let most = HARMLESS.max(default * FACTOR);
    ensure!(wait <= most, "{task} waited for {wait:.2?}, {default:.2?} by default");
    Ok(())
}

fn freeze(workers: &Workers, loads: &[Load], on: bool) -> Result<()> {
    workers.freeze(on)?;
    loads.iter().try_for_each(|l| l.freeze(on))
}

/// The longest wait of each worker that ends in `window` or is under way at its end.
fn longest<T>(
    under: &str,
    workers: &Workers,
    window: impl FnOnce() -> Result<T>,
) -> Result<(Vec<Duration>, T)> {
    pause(1.0);
    // what was before is over with the first unit of work
    all_move(workers, workers.len())?;
    let board = workers.board();
    (0..workers.len()).for_each(|i| board.longest(i).store(0, Ordering::Relaxed));
    let before = workers.counts();
    let done = window()?;
    let work: Vec<u64> = workers.counts().iter().zip(before).map(|(a, b)| a - b).collect();
    all_move(workers, workers.len())?;
    let waits: Vec<Duration> = (0..workers.len())
        .map(|i| Duration::from_nanos(board.longest(i).load(Ordering::Relaxed)))
        .collect();
    say(&format!("{under}: longest waits {waits:.2?}, work {work:?}"));
    Ok((waits, done))
}

/// Waits until each of the first `nr` workers has done some work.
fn all_move(workers: &Workers, nr: usize) -> Result<()> {
    let before = workers.counts();
    until("each worker does some work", PATIENCE, || {
        Ok(workers.counts().iter().zip(&before).take(nr).all(|(now, before)| now > before))
    })
}

/// Catches: a task far ahead of the bound clock, for what it ran on RT CPUs or for its nice value, that
/// waits behind all that wakes up in the queue of an NRT CPU: that queue's lead is forgiven, and the
/// bound clock does not move. Such a task stood still until the kernel ejected the scheduler.
pub const NEIGHBOURS: Scenario = Scenario {
    name: "neighbours",
    what: "beside tasks that may run on one NRT CPU only, and keep it busy, tasks that are killed on RT \
           CPUs get their turn to end, and light ones their share",
    scope: Scope::First,
    boot: &["--cpus", "2"],
    secs: 27,
    host: Host::Timed,
    complaints: &[],
    run: neighbours,
};

/// So many compute on RT CPUs, and are killed one after the other; half of them under each scheduler.
const KILLED: usize = 8;
/// Tasks that wake up in the queue in which the killed ones wait: it is never passed over for long.
const WAKING: usize = 2;
/// Tasks of nice 19 in that queue: a tick of run time puts one 160 ms ahead of its clock.
const LIGHT: usize = 2;
const WINDOW_SECS: f64 = 4.0;

fn neighbours(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus::one(1))?;
    let mut waking = Workers::start("waking", [Kind::Sleep; WAKING].map(Spec::new))?;
    let mut workers = Workers::start("leaving", [Kind::Spin; KILLED].map(Spec::new))?;
    let light = [Kind::Call; LIGHT].map(|kind| Spec::new(kind).nice(19).clocked());
    let mut light = Workers::start("light", light)?;
    for w in [&mut waking, &mut workers, &mut light] {
        w.wait_begun()?;
    }
    ctx.nrt.bind(0)?; // of one CPU
    let mut load = Load::hackbench()?;
    ctx.all().bind(0)?;
    pause(1.0);
    let (default_waits, default) = longest("kernel's default, nice 19", &light, || {
        pause(WINDOW_SECS);
        longest_end("kernel's default", &mut workers)
    })?;
    let (waits, (mut daemon, artis)) = longest("artis, nice 19", &light, || {
        let daemon = ctx.load(&[])?;
        pause(WINDOW_SECS);
        Ok((daemon, longest_end("artis", &mut workers)?))
    })?;
    daemon.ensure_loaded("at the end")?;
    load.ensure_runs()?;
    drop((waking, light, load));
    daemon.finish()?;
    ensure_short("a killed task", artis, default)?;
    let longest = |waits: Vec<Duration>| waits.into_iter().max().unwrap_or_default();
    ensure_short("nice 19", longest(waits), longest(default_waits))?;
    Ok(Outcome::Passed)
}

/// The longest time from SIGKILL to the end.
fn longest_end(under: &str, workers: &mut Workers) -> Result<Duration> {
    let mut ends = Vec::new();
    for _ in 0..KILLED / 2 {
        ends.push(workers.kill_last()?);
        pause(0.2);
    }
    say(&format!("{under}: ended after {ends:.2?}"));
    Ok(ends.into_iter().max().unwrap_or_default())
}

/// Catches: a task that takes the lead of a CPU's own queue along when it may run on other CPUs again,
/// by a change of its affinity or at the end of a migration-disabled section.
pub const WIDENED: Scenario = Scenario {
    name: "widened",
    what: "a light task that was bound to one NRT CPU has its share when it may run on all of them",
    scope: Scope::First,
    boot: &[],
    secs: 24,
    host: Host::Timed,
    complaints: &[],
    run: widened,
};

/// Tasks that call the kernel on the NRT CPUs, beside that of nice 19.
const CALLING: usize = 12;

fn widened(ctx: &Ctx) -> Result<Outcome> {
    let mut workers = Workers::start("waits", [Spec::new(Kind::Spin).nice(19).clocked()])?;
    let mut calling = Workers::start("calling", vec![Spec::new(Kind::Call).on(ctx.nrt); CALLING])?;
    workers.wait_begun()?;
    calling.wait_begun()?;
    let pid = workers.pid(0).cast_signed();
    let bind_and_widen = || {
        Cpus::one(ctx.nrt.first()?).bind(pid)?;
        pause(WINDOW_SECS);
        ctx.nrt.bind(pid)?;
        pause(1.0);
        Ok(())
    };
    let (default, ()) = longest("kernel's default", &workers, bind_and_widen)?;
    let mut daemon = ctx.load(&[])?;
    let (artis, ()) = longest("artis", &workers, bind_and_widen)?;
    daemon.ensure_loaded("at the end")?;
    drop((workers, calling));
    daemon.finish()?;
    ensure_short("nice 19", artis[0], default[0])?;
    Ok(Outcome::Passed)
}

/// Catches: a light task that is preempted inside an RCU read-side section and then waits its turn:
/// no grace period of the machine ends before, and the kernel ejects the scheduler after 21 s.
pub const GRACE_PERIODS: Scenario = Scenario {
    name: "grace_periods",
    what: "no grace period of RCU waits for the turn of a nice 19 task that is preempted in a reader",
    scope: Scope::First,
    boot: &[],
    secs: 28,
    host: Host::Timed,
    complaints: &[],
    run: grace_periods,
};

/// Where the readers wait by their weight alone it was 1.3 and 2.6, where they need not, 22 and 28.
const GRACE_FACTOR: u32 = 7;
/// How long grace periods are looked at, four times.
const GRACE_WINDOW: Duration = Duration::from_secs(5);

fn grace_periods(ctx: &Ctx) -> Result<Outcome> {
    let mut workers = Workers::start("readers", vec![Spec::new(Kind::Reader).nice(19); 4])?;
    for _ in 0..20 {
        workers.add(Spec::new(Kind::Call))?;
    }
    workers.wait_begun()?;
    let first = longest_grace("kernel's default")?;
    workers.freeze(true)?;
    let mut daemon = ctx.load(&[])?;
    workers.freeze(false)?;
    let artis = longest_grace("artis")?.max(longest_grace("artis")?);
    daemon.ensure_loaded("among readers")?;
    workers.freeze(true)?;
    daemon.finish()?;
    workers.freeze(false)?;
    let default = first.max(longest_grace("kernel's default")?);
    drop(workers);
    for (name, longest) in [("longest", artis), ("longest_default", default)] {
        compared(name, format!("{:.2}", longest.as_secs_f64()), "s", "ABBA, 5 s each");
    }
    ensure!(
        artis <= HARMLESS.max(default / GRACE_FACTOR),
        "a grace period took {artis:.2?}, {default:.2?} by default"
    );
    Ok(Outcome::Passed)
}

/// The longest of the grace periods that are waited for one after the other.
fn longest_grace(under: &str) -> Result<Duration> {
    let (began, mut all) = (Instant::now(), Vec::new());
    while began.elapsed() < GRACE_WINDOW {
        let one = Instant::now();
        grace_period()?;
        all.push(one.elapsed());
    }
    all.sort_unstable();
    let longest = all.last().copied().unwrap_or_default();
    let median = all.get(all.len() / 2).copied().unwrap_or_default();
    say(&format!(
        "{under}: {} grace periods, median {median:.2?}, longest {longest:.2?}",
        all.len()
    ));
    Ok(longest)
}

/// Catches: a dispatch path that takes the kernel's server of the fair class for a deadline task. The
/// server's time runs once more about a second after the last fair task has left, which is when
/// the scheduler took over. What woke at that moment was left in its queue, and the CPU went idle,
/// until another task woke there. With that fault the auditor found such waits of up to 0.7 s in four of
/// six runs of three takeovers; there are six.
pub const FAIR_SERVER: Scenario = Scenario {
    name: "fair_server",
    what: "a task that wakes while the kernel's server of the fair class ends is not left waiting",
    scope: Scope::First,
    boot: &[],
    secs: 30,
    host: Host::Alone,
    complaints: &[],
    run: fair_server,
};

/// So often the scheduler takes over.
const TAKEOVERS: u32 = 6;
/// From the takeover until the server has ended, and the auditor has seen which tasks were left.
const SERVER_ENDS_S: f64 = 1.5;

fn fair_server(ctx: &Ctx) -> Result<Outcome> {
    let sleepers = ctx.all().iter().map(|cpu| Spec::new(Kind::Sleep).on(Cpus::one(cpu)));
    let mut sleepers = Workers::start("sleepers", sleepers)?;
    sleepers.wait_begun()?;
    for _ in 0..TAKEOVERS {
        let before = sleepers.counts();
        let daemon = ctx.load(&[])?;
        pause(SERVER_ENDS_S);
        daemon.finish()?;
        for (now, before) in sleepers.counts().iter().zip(&before) {
            enough(now - before, 100, "naps")?;
        }
    }
    Ok(Outcome::Passed)
}
