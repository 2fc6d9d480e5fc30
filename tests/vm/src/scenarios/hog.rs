// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that keeps a CPU for longer than the watchdog's time.

use anyhow::{Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::{cpu_ticks, pause};
use crate::load::{Workers, mix};
use crate::worker::{Kind, Spec};

/// Longer than twice the 5 s of `timeout_ms` in src/bpf/main.bpf.c: a task that
/// is stranded at the start is found by the watchdog before the end.
const HOG_SECS: f64 = 12.0;

/// Catches: a task in the local queue of the hog's CPU (nobody takes it from
/// there, the watchdog ejects the scheduler), a queue of an RT CPU that no NRT
/// CPU takes back, pushes to a CPU that an RT task holds.
pub const FIFO_HOG: Scenario = Scenario {
    name: "fifo_hog",
    what: "a FIFO hog on an RT CPU strands no task that may run elsewhere",
    scope: Scope::Everywhere,
    run: |ctx| fifo_hog(ctx, ctx.rt.first()?),
};

/// Catches: the same on an NRT CPU: work that waits for that one CPU although
/// another could take it.
pub const FIFO_HOG_NRT: Scenario = Scenario {
    name: "fifo_hog_nrt",
    what: "a FIFO hog on an NRT CPU strands no task that may run elsewhere",
    scope: Scope::Full,
    run: |ctx| fifo_hog(ctx, ctx.nrt.last()?),
};

fn fifo_hog(ctx: &Ctx, cpu: u32) -> Result<Outcome> {
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    let mut daemon = ctx.load(&[])?;
    let mut loads = mix()?;
    let kinds = [Spin, Spin, Spin, Spin, Spin, Spin, Sleep, Sleep, Call, Touch, Fork];
    let mut workers = Workers::start("movable", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    pause(1.0);
    let mut hog = Workers::new("hog")?;
    hog.add(Spec::new(Spin).on(Cpus::one(cpu)).fifo(50))?;
    hog.wait_begun()?;
    let ticks = cpu_ticks(cpu)?;
    for part in 1..=4 {
        workers
            .ensure_progress(HOG_SECS / 4.0, &format!("in part {part} of the hog on CPU {cpu}"))?;
        daemon.ensure_loaded(&format!("in part {part} of the hog on CPU {cpu}"))?;
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
