// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that keeps a CPU for longer than the watchdog's time.

use anyhow::{Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::{cpu_ticks, pause, preempt_rt};
use crate::load::{Workers, mix};
use crate::worker::{Kind, Spec, raise_threads};

/// Catches: a task in the local queue of the hog's CPU (nobody takes it from
/// there, and the watchdog ejects the scheduler), a queue of an RT CPU that no
/// NRT CPU takes back, pushes to a CPU that an RT task holds; with the NRT part:
/// work that waits for the hog's CPU although another could take it.
pub const FIFO_HOG: Scenario = Scenario {
    name: "fifo_hog",
    what: "a FIFO hog on an RT CPU strands no task that may run elsewhere",
    scope: Scope::Everywhere,
    boot: &[],
    run: |ctx| fifo_hog(ctx, ctx.rt.first()?, 4),
};

/// Catches: the same on an NRT CPU.
pub const FIFO_HOG_NRT: Scenario = Scenario {
    name: "fifo_hog_nrt",
    what: "a FIFO hog on an NRT CPU strands no task that may run elsewhere",
    scope: Scope::Full,
    boot: &[],
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

/// Tasks that may run on every CPU.
fn movable() -> [Kind; 11] {
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    [Spin, Spin, Spin, Spin, Spin, Spin, Call, Touch, Fork, Sleep, Sleep]
}
