// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that keeps a CPU for longer than the watchdog's time.

use std::fs;

use anyhow::{Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{cpu_ticks, pause, preempt_rt};
use crate::load::{Workers, mix};
use crate::occupancy::{Occupancy, Stand};
use crate::spread::mean_cv;
use crate::work::Duty;
use crate::worker::{Kind, Spec, raise_threads};

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
    timed: false,
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
    timed: false,
    complaints: &[],
    run: |ctx| fifo_hog(ctx, ctx.nrt.last()?, 2),
};

/// In each window every task must do some work. Four are more than the shortest
/// time that the daemon gives the kernel's watchdog.
const WINDOW: f64 = 3.0;

/// Above every other task, below the kernel's interrupt threads (50 on PREEMPT_RT):
/// without the console's, what this program prints would wait for the hog to end.
const HOG_PRIORITY: i32 = 10;
/// Between both: on PREEMPT_RT a thread of priority 1 runs a CPU's timers. Who sleeps by a
/// timer of the hog's CPU would not wake, whatever the scheduler, so it is raised as one
/// does on such machines.
const TIMERS_PRIORITY: i32 = 20;

fn fifo_hog(ctx: &Ctx, cpu: u32, windows: u32) -> Result<Outcome> {
    let timers = raise_threads("ktimers/", TIMERS_PRIORITY)?;
    ensure!(timers > 0 || !preempt_rt(), "a PREEMPT_RT kernel without ktimers threads");
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
    drop(hog);
    workers.ensure_progress(2.0, "after the hog")?;
    for l in &mut loads {
        l.ensure_runs()?;
    }
    drop((workers, loads));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Catches: a real-time share that is kept at context switches only, so that a CPU on which
/// nothing switches reads as it did before the hog; a load without its cap.
pub const HOG_LOAD: Scenario = Scenario {
    name: "hog_load",
    what: "the CPU of an endless FIFO task reads as loaded, and computing tasks keep away from it",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 12,
    timed: false,
    complaints: &[],
    run: hog_load,
};

/// Computing tasks for three CPUs.
const COMPUTING: usize = 6;
/// The load of one task on a CPU that a real-time task never leaves: M is capped (model
/// section 5).
const CAP: f64 = 65.0;
/// Of their run time; 0.006 was seen.
const VARIATION: f64 = 0.05;
/// Mean number of them on the hog's CPU, waiting there; 0.00 was seen.
const STRAYS: f64 = 0.1;
/// Looks at where they are, 50 ms apart.
const LOOKS: u32 = 100;

fn hog_load(ctx: &Ctx) -> Result<Outcome> {
    let (hogged, other) = (ctx.rt.first()?, ctx.rt.last()?);
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
    stats.read()?; // a share is about the time since the last reading
    let (before, mut strays) = (observer.snapshot()?, 0u32);
    for _ in 0..LOOKS {
        pause(0.05);
        let stands = observer.stands()?;
        let there = |s: &Stand| [stands[slot], Stand::Waits(hogged)].contains(s);
        strays += u32::try_from(stands[first..slot].iter().filter(|s| there(s)).count())?;
    }
    let mut seen = observer.snapshot()?.since(&before);
    seen.tasks.truncate(slot);
    let queue = observer.stands()?[slot];
    let share = stats.of_cpu(hogged, "rt_pct")?;
    let (load, weight) = (stats.of_cpu(hogged, "load")?, stats.of_cpu(hogged, "weight")?);
    drop(stats);
    daemon.ensure_loaded("under the hog")?;
    drop((hog, bound, workers));
    daemon.finish()?;

    let (strays, expected) = (f64::from(strays) / f64::from(LOOKS), weight / 100.0 * CAP);
    let (part, cv) = mean_cv(&seen.parts());
    say(&format!("{}; run time {part:.3} of a CPU each, CV {cv:.3}", seen.table()));
    say(&format!(
        "CPU {hogged}: rt {share:.1} %, load {load:.1} at weight {weight:.0}; \
         the task bound to it is {queue:x?}, {strays:.2} others wait there"
    ));
    ensure!(share >= 97.0, "the hog's CPU reads as used for {share:.1} % by real-time tasks");
    ensure!(
        weight >= 100.0 && (load / expected - 1.0).abs() <= 0.1,
        "load {load:.1} at weight {weight:.0}, expected {expected:.1}"
    );
    ensure!(strays <= STRAYS, "{strays:.2} computing tasks wait on the hog's CPU on average");
    ensure!(seen.idle(other) <= 0.1, "CPU {other} was idle for {:.2}", seen.idle(other));
    ensure!(cv <= VARIATION, "run time of the computing tasks varies by {cv:.3}");
    Ok(Outcome::Passed)
}

/// Catches: --put-back eager that waits for the tick as lazy does, lazy that does not wait, and
/// either where the kernel can do neither; a task that is put back and taken for one that cannot
/// migrate, so that it waits for the real-time task's CPU.
pub const PUT_BACK: Scenario = Scenario {
    name: "put_back",
    what: "--put-back eager takes a task from beneath each real-time one, lazy only from long ones",
    scope: Scope::Both,
    boot: &["--icount"],
    secs: 14,
    timed: false,
    complaints: &[],
    run: put_back,
};

/// Of each 20 ms, percent: less than --put-back-us.
const SHORT_DUTY_PCT: u32 = 5;
/// Periods of the real-time task that are looked at.
const PERIODS: u32 = 100;
/// Tasks queued as migration-disabled meanwhile, although they compute: 0 were seen, and one in
/// each period (92 of 92 that were put back) where ops.cpu_release counted among its reasons.
const BOUND_FEW: u64 = 5;

fn put_back(ctx: &Ctx) -> Result<Outcome> {
    let rt_cpu = ctx.rt.first()?.to_string();
    let mut ways = vec![("lazy", 0..=PERIODS / 10), ("eager", PERIODS / 10 * 9..=u32::MAX)];
    // from 6.19 on
    if !fs::read_to_string("/proc/kallsyms")?.contains("scx_bpf_reenqueue_local___v2") {
        let args = ["--rt-cpus", &rt_cpu, "--put-back", "eager"];
        let refused = Daemon::run(&ctx.program, &args)?;
        ensure!(
            refused.code == 2 && refused.output.contains("6.19"),
            "exit code {}: {}",
            refused.code,
            refused.output
        );
        ways = vec![("auto", PERIODS / 10 * 8..=u32::MAX)];
    }
    for (how, expected) in ways {
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
