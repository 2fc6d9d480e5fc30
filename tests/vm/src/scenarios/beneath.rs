// SPDX-License-Identifier: GPL-2.0-only
//! Tasks beneath a real-time task that they did not run before.

use std::thread;

use anyhow::{Result, anyhow, ensure};
use nix::sys::prctl::set_timerslack;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::policy::Policy;
use crate::work::sleep_until;
use crate::work::{compute, monotonic_ns};

/// Catches: a task that is sent to an idle CPU which a real-time task takes in the same moment, and
/// waits for that one to end, since nothing takes it out of the local queue. On PREEMPT_RT a thread
/// that the FIFO task keeps from running wakes it up, after that task.
pub const WOKEN_BENEATH: Scenario = Scenario {
    name: "woken_beneath",
    what: "a task that wakes in the same interrupt as a FIFO task of its CPU runs on another CPU",
    scope: Scope::NotRt,
    boot: &["--icount"],
    secs: 14,
    host: Host::Shared,
    complaints: &[],
    run: woken_beneath,
};

/// In every second turn the FIFO task wakes up first.
const TURNS: u64 = 8;
const PERIOD_NS: u64 = 400_000_000;
const FIFO_RUNS_NS: u64 = 200_000_000;
/// Between the timers of the two: the interrupt of the first one finds that of the second one expired.
const APART_NS: u64 = 500;
/// The task may wait for the first tick after --put-back-us, which is 2 ms; ticks come every 4 ms.
const WAITS_MAX_NS: u64 = 10_000_000;

/// A SCHED_FIFO task of this CPU that wakes up and runs.
fn fifo(cpu: Cpus, wakes_ns: &[u64]) -> Result<()> {
    cpu.bind(0)?;
    Policy::new(libc::SCHED_FIFO, 50).set(0)?;
    for (turn, wake_ns) in wakes_ns.iter().enumerate() {
        sleep_until(if turn % 2 == 0 { wake_ns + APART_NS } else { wake_ns - APART_NS })?;
        while monotonic_ns()? < wake_ns + FIFO_RUNS_NS {
            compute();
        }
    }
    Ok(())
}

/// A task that may run on all NRT CPUs and wakes up on this one: how long after its timer it runs, ns.
fn other(ctx: &Ctx, cpu: Cpus, wakes_ns: &[u64]) -> Result<Vec<u64>> {
    Policy::new(libc::SCHED_OTHER, 0).set(0)?;
    set_timerslack(1)?;
    let waits = wakes_ns.iter().map(|wake_ns| {
        cpu.bind(0)?;
        ctx.nrt.bind(0)?;
        sleep_until(*wake_ns)?;
        Ok(monotonic_ns()? - wake_ns)
    });
    waits.collect()
}

fn woken_beneath(ctx: &Ctx) -> Result<Outcome> {
    ctx.nrt.bind(0)?;
    ["lazy", "eager"].into_iter().try_for_each(|how| woken(ctx, how))?;
    ctx.all().bind(0)?;
    Ok(Outcome::Passed)
}

fn woken(ctx: &Ctx, how: &str) -> Result<()> {
    let mut daemon = ctx.load(&["--put-back", how])?;
    let cpu = Cpus::one(ctx.nrt.last()?);
    let begin_ns = monotonic_ns()?;
    let wakes_ns: Vec<u64> = (1..=TURNS).map(|turn| begin_ns + turn * PERIOD_NS).collect();
    let waits_ns = thread::scope(|scope| -> Result<Vec<u64>> {
        let fifo = scope.spawn(|| fifo(cpu, &wakes_ns));
        let other = scope.spawn(|| other(ctx, cpu, &wakes_ns));
        fifo.join().map_err(|_| anyhow!("the FIFO task panicked"))??;
        other.join().map_err(|_| anyhow!("the other task panicked"))?
    })?;
    say(&format!(
        "{how}: from its timer to its run, us: {:?}",
        waits_ns.iter().map(|ns| ns / 1000).collect::<Vec<_>>()
    ));
    daemon.ensure_loaded("after the turns")?;
    daemon.finish()?;
    let longest_ns = waits_ns.into_iter().max().unwrap_or(u64::MAX);
    ensure!(longest_ns <= WAITS_MAX_NS, "{how}: it waited for {longest_ns} ns beside an idle CPU");
    Ok(())
}
