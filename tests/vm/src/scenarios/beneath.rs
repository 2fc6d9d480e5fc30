// SPDX-License-Identifier: GPL-2.0-only
//! Tasks beneath a real-time task that they did not run before.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::atomic::Ordering;
use std::thread;

use anyhow::{Result, anyhow, ensure};
use nix::sys::prctl::set_timerslack;

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::guest::pause;
use crate::load::Workers;
use crate::occupancy::Occupancy;
use crate::policy::Policy;
use crate::work::sleep_until;
use crate::work::{compute, monotonic_ns};
use crate::worker::{Kind, Spec};

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

/// Catches: "held by real-time tasks" that begins anew with each of them, so that what they have preempted
/// waits for as long as one comes after the other.
pub const IN_TURN: Scenario = Scenario {
    name: "in_turn",
    what: "two FIFO tasks in turn hold an RT CPU: no task waits beneath them while others take turns",
    scope: Scope::Everywhere,
    boot: &["--icount"],
    secs: 14,
    host: Host::Shared,
    complaints: &[],
    run: in_turn,
};

/// For how long the two take turns, and how long one lasts.
const HELD_NS: u64 = 2_000_000_000;
const TURN_NS: u64 = 1_000_000;
/// Real-time share of that CPU: from 7.0 on the kernel's server of ext tasks has 0.05.
const HELD_MIN: f64 = 0.9;
/// The longest wait of a computing task meanwhile.
const BENEATH_MAX_NS: u64 = 60_000_000;

fn in_turn(ctx: &Ctx) -> Result<Outcome> {
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut daemon = ctx.load(&[])?;
    let cpu = ctx.rt.first()?;
    let specs = ctx.all().iter().map(|_| Spec::new(Kind::Spin).clocked());
    let mut workers = Workers::start("compute", specs)?;
    workers.wait_begun()?;
    pause(0.5);
    let board = workers.board();
    (0..workers.len()).for_each(|i| board.longest(i).store(0, Ordering::Relaxed));
    let before = observer.snapshot()?;
    let turns = take_turns(Cpus::one(cpu), monotonic_ns()? + HELD_NS)?;
    let held = observer.snapshot()?.since(&before).rt_share(cpu);
    workers.ensure_progress(0.5, "after the turns")?;
    let longest = |i| workers.board().longest(i).load(Ordering::Relaxed);
    let waits_ns: Vec<u64> = (0..workers.len()).map(longest).collect();
    say(&format!(
        "CPU {cpu}: {turns} turns, real-time tasks {held:.3} of its time; longest waits, us: {:?}",
        waits_ns.iter().map(|ns| ns / 1000).collect::<Vec<_>>()
    ));
    enough(turns, HELD_NS / TURN_NS / 2, "turns")?;
    ensure!(held > HELD_MIN, "real-time tasks had {held:.3} of CPU {cpu}: it was not held");
    daemon.ensure_loaded("after the turns")?;
    drop(workers);
    daemon.finish()?;
    let longest_ns = waits_ns.into_iter().max().unwrap_or(u64::MAX);
    ensure!(longest_ns <= BENEATH_MAX_NS, "a task waited for {longest_ns} ns");
    Ok(Outcome::Passed)
}

/// Two SCHED_FIFO tasks of this CPU, one of which computes at each moment. Returns how many turns they
/// had.
fn take_turns(cpu: Cpus, end_ns: u64) -> Result<u64> {
    let ((first, to_first), (second, to_second)) = (pipe()?, pipe()?);
    (&to_first).write_all(b"x")?;
    thread::scope(|scope| {
        let two = [(first, to_second), (second, to_first)]
            .map(|(mine, to_other)| scope.spawn(move || take_turn(cpu, mine, to_other, end_ns)));
        two.into_iter().map(|task| task.join().map_err(|_| anyhow!("a task panicked"))?).sum()
    })
}

/// Until the other one has closed its pipe.
fn take_turn(
    cpu: Cpus,
    mut mine: PipeReader,
    mut to_other: PipeWriter,
    end_ns: u64,
) -> Result<u64> {
    cpu.bind(0)?;
    Policy::new(libc::SCHED_FIFO, 50).set(0)?;
    let mut turns = 0;
    while monotonic_ns()? < end_ns && mine.read(&mut [0])? == 1 {
        let turn_ends_ns = monotonic_ns()? + TURN_NS;
        while monotonic_ns()? < turn_ends_ns {}
        turns += 1;
        // fails when the other one has ended
        if to_other.write_all(b"x").is_err() {
            break;
        }
    }
    Ok(turns)
}
