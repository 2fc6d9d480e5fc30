// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that keeps a CPU for longer than the watchdog's time.

use std::ops::Range;

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::{cpu_ticks, pause};
use crate::kernel_threads::Raised;
use crate::load::{Workers, mix};
use crate::occupancy::{Occupancy, Stand};
use crate::work::Duty;
use crate::worker::{Kind, Spec};

/// Catches: a task in the local queue of the hog's CPU (nobody takes it from
/// there, and the watchdog ejects the scheduler), a queue of an RT CPU that no
/// NRT CPU takes back, pushes to a CPU that an RT task holds; with the NRT part:
/// work that waits for the hog's CPU although another could take it.
pub const FIFO_HOG: Scenario = Scenario {
    name: "fifo_hog",
    what: "a FIFO hog on an RT CPU strands no task that may run elsewhere",
    scope: Scope::Both,
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &[],
    run: |ctx| fifo_hog(ctx, ctx.rt.first()?, 4),
};

/// Catches: the same on an NRT CPU.
pub const FIFO_HOG_NRT: Scenario = Scenario {
    name: "fifo_hog_nrt",
    what: "a FIFO hog on an NRT CPU strands no task that may run elsewhere",
    scope: Scope::First,
    boot: &[],
    secs: 14,
    host: Host::Alone,
    complaints: &[],
    run: |ctx| fifo_hog(ctx, ctx.nrt.last()?, 2),
};

/// In each window every task must do some work. Four are more than the shortest
/// time that the daemon gives the kernel's watchdog.
const WINDOW: f64 = 3.0;

/// Above every other task, below the kernel's interrupt threads (50 on PREEMPT_RT):
/// without the console's, what this program prints would wait for the hog to end.
pub(super) const HOG_PRIORITY: i32 = 10;
/// Between both, see [`Raised`].
pub(super) const KERNEL_PRIORITY: u32 = 20;

fn fifo_hog(ctx: &Ctx, cpu: u32, windows: u32) -> Result<Outcome> {
    let raised = Raised::to(KERNEL_PRIORITY)?;
    let mut daemon = ctx.load(&[])?;
    let mut loads = mix()?;
    let mut workers = Workers::start("movable", movable().into_iter().map(Spec::new))?;
    workers.wait_begun()?;
    pause(1.0);
    let mut hog = Workers::new("hog")?;
    hog.add(Spec::new(Kind::Spin).on(Cpus::one(cpu)).fifo(HOG_PRIORITY))?;
    hog.wait_begun()?;
    // it became real-time on the CPU itself: it shall take it from another task, too
    hog.freeze(true)?;
    pause(0.5);
    hog.freeze(false)?;
    let ticks = cpu_ticks(cpu)?;
    for w in 1..=windows {
        let when = format!("in window {w} of the hog on CPU {cpu}");
        workers.ensure_progress(WINDOW, &when)?;
        daemon.ensure_loaded(&when)?;
    }
    let after = cpu_ticks(cpu)?;
    let (user, all) = (after.0 - ticks.0, after.1 - ticks.1);
    say(&format!("CPU {cpu} in user mode: {} %", user * 100 / all.max(1)));
    ensure!(user * 100 >= all * 85, "the hog did not hold CPU {cpu}: {user} of {all} ticks");
    drop((hog, raised));
    workers.ensure_progress(2.0, "after the hog")?;
    for l in &mut loads {
        l.ensure_runs()?;
    }
    drop((workers, loads));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Catches: a load without its cap; tasks that are left in the queue of a CPU that a real-time task
/// has taken for long.
pub const HOG_LOAD: Scenario = Scenario {
    name: "hog_load",
    what: "the CPU of an endless FIFO task reads as loaded, and computing tasks keep away from it",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 16,
    host: Host::Shared,
    complaints: &[],
    run: hog_load,
};

/// Computing tasks for three CPUs.
const COMPUTING: usize = 6;
/// The load of one task on a CPU that a real-time task never leaves: M is capped (model
/// section 5).
const CAP: f64 = 65.0;
/// Of it, relative; 0.00 was seen, and 5.3 without the cap.
const CAP_OFF: f64 = 0.1;
/// Times that the hog comes anew. No task was seen beneath it in any of them, and one in each where
/// they are not taken back.
const TURNS: usize = 5;
/// Before each: the CPU's real-time share is small again, and computing tasks wait there.
const FORGOTTEN_S: f64 = 1.5;
/// After the hog has come; by then all tasks have left its CPU's queues: --rescue-us and the
/// millisecond between two looks, with time to spare.
const RESCUED_S: f64 = 0.08;

fn hog_load(ctx: &Ctx) -> Result<Outcome> {
    let hogged = ctx.rt.first()?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut daemon = ctx.load(&[])?;
    let mut workers = Workers::start("compute", [Kind::Spin; COMPUTING].map(Spec::new))?;
    workers.wait_begun()?;
    let first = observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    // it may run nowhere else, so it waits where strays would wait
    let on_it = Spec::new(Kind::Spin).on(Cpus::one(hogged));
    let mut bound = Workers::start("bound", [on_it.clone()])?;
    bound.wait_begun()?;
    let slot = observer.watch([bound.pid(0)])?;
    let mut hog = Workers::start("hog", [on_it.fifo(HOG_PRIORITY)])?;
    hog.wait_begun()?;
    pause(3.0); // six times the constant of the average
    let mut stats = daemon.stats()?;
    let queue = observer.stands()?[slot];
    let (load, weight) = (stats.of_cpu(hogged, "load")?, stats.of_cpu(hogged, "weight")?);
    drop(stats);
    daemon.ensure_loaded("under the hog")?;
    // it ends on the CPU that the hog holds
    hog.freeze(true)?;
    drop(bound);
    let beneath = beneath(&mut observer, &hog, first..slot, &[queue, Stand::Waits(hogged)])?;
    daemon.ensure_loaded("after the hog's turns")?;
    drop((hog, workers));
    daemon.finish()?;

    let expected = weight / 100.0 * CAP;
    say(&format!(
        "CPU {hogged}: load {load:.1} at weight {weight:.0}; in {TURNS} turns of the hog {beneath} \
         tasks were left in {queue:x?} beneath it"
    ));
    ensure!(
        weight >= 100.0 && (load / expected - 1.0).abs() <= CAP_OFF,
        "load {load:.1} at weight {weight:.0}, expected {expected:.1}"
    );
    ensure!(beneath == 0, "{beneath} tasks wait beneath the hog {RESCUED_S} s after it came");
    Ok(Outcome::Passed)
}

/// How many of the watched tasks still wait in the hog's CPU's queues soon after the hog has come, over
/// several turns.
fn beneath(
    observer: &mut Occupancy,
    hog: &Workers,
    watched: Range<usize>,
    queues: &[Stand],
) -> Result<usize> {
    let mut left = 0;
    for _ in 0..TURNS {
        hog.freeze(true)?;
        pause(FORGOTTEN_S);
        hog.freeze(false)?;
        pause(RESCUED_S);
        let stands = observer.stands()?;
        left += stands[watched.clone()].iter().filter(|s| queues.contains(s)).count();
    }
    Ok(left)
}

/// Catches: --put-back eager that waits for the tick as lazy does, lazy that does not wait; a task
/// that is put back and taken for one that cannot migrate, so that it waits for the real-time task's
/// CPU.
pub const PUT_BACK: Scenario = Scenario {
    name: "put_back",
    what: "--put-back eager takes a task from beneath each real-time one, lazy only from long ones",
    scope: Scope::Both,
    boot: &["--icount"],
    secs: 14,
    host: Host::Shared,
    complaints: &[],
    run: put_back,
};

/// Of each 20 ms, percent: less than --put-back-us.
const SHORT_DUTY_PCT: u32 = 5;
/// Periods of the real-time task that are looked at.
const PERIODS: u32 = 100;
/// Tasks queued as migration-disabled meanwhile, although they compute: 0 to 4 were seen, all at
/// once, and one in each period (92 of 92 that were put back) where ops.cpu_release counted among its
/// reasons.
const BOUND_FEW: u64 = 5;

fn put_back(ctx: &Ctx) -> Result<Outcome> {
    for (how, expected) in [("lazy", 0..=PERIODS / 10), ("eager", PERIODS / 10 * 9..=u32::MAX)] {
        let mut daemon = ctx.load(&["--put-back", how])?;
        let mut specs = vec![Spec::new(Kind::Spin); ctx.all().iter().count()];
        let mut short = Spec::new(Kind::Duty).on(Cpus::one(ctx.rt.first()?)).fifo(50);
        short.duty = SHORT_DUTY_PCT;
        specs.push(short);
        let mut workers = Workers::start("beneath", specs)?;
        workers.wait_begun()?;
        pause(1.0);
        let mut stats = daemon.stats()?;
        let before = (stats.counter("reenqueued")?, stats.counter("exempt_migration_disabled")?);
        workers.ensure_progress((Duty::PERIOD * PERIODS).as_secs_f64(), how)?;
        let moved = u32::try_from(stats.counter("reenqueued")? - before.0)?;
        let bound = stats.counter("exempt_migration_disabled")? - before.1;
        say(&format!(
            "{how}: {moved} put back in {PERIODS} periods, {bound} as migration-disabled"
        ));
        ensure!(expected.contains(&moved), "{how}: {moved} put back, not {expected:?}");
        ensure!(bound <= BOUND_FEW, "{how}: {bound} queued as migration-disabled");
        daemon.ensure_loaded(how)?;
        drop((workers, stats));
        daemon.finish()?;
    }
    Ok(Outcome::Passed)
}

/// Tasks that may run on every CPU.
fn movable() -> [Kind; 11] {
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    [Spin, Spin, Spin, Spin, Spin, Spin, Call, Touch, Fork, Sleep, Sleep]
}
