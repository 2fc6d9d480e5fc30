// SPDX-License-Identifier: GPL-2.0-only
//! Where evicted tasks go when CPUs are not alike: sockets, and threads of one core.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cgroup::Cgroup;
use crate::cpus::Cpus;
use crate::guest::pause;
use crate::load::Workers;
use crate::occupancy::{Eviction, Occupancy};
use crate::spread::{Snapshot, mean_cv};
use crate::worker::{Kind, Spec};

/// Catches: an eviction that goes to another socket although the own one's NRT CPU is
/// idle; a group of NRT CPUs that others never relieve; tasks that belong to a socket.
pub const TWO_LLCS: Scenario = Scenario {
    name: "two_llcs",
    what: "two sockets: evicted tasks stay on theirs if its NRT CPU is idle, and all share both",
    scope: Scope::First,
    boot: &["--icount=1", "--topology", "sockets=2"],
    secs: 40,
    host: Host::Shared,
    complaints: &[],
    run: two_llcs,
};

/// Catches: an eviction to the thread beside a CPU that a hard real-time task computes on,
/// although another core is idle; a core that counts as such after its real-time tasks have ended.
pub const SMT: Scenario = Scenario {
    name: "smt",
    what: "two cores of two threads: evicted tasks avoid the sibling of a CPU with a real-time task",
    scope: Scope::First,
    boot: &["--icount=1", "--topology", "threads=2"],
    secs: 21,
    host: Host::Shared,
    complaints: &[],
    run: smt,
};

/// Catches, by the auditor: tasks that are moved to a queue that none of their CPUs serves, as cpusets
/// and numactl bring it about; an idle CPU that a task is queued for and that is not woken.
pub const BOUND: Scenario = Scenario {
    name: "bound",
    what: "two sockets, five tasks of a cpuset on one of them, then on the other: none stands still; \
           tasks that may leave a CPU run on the idle ones at once",
    scope: Scope::First,
    boot: TWO_LLCS.boot,
    secs: 25,
    host: Host::Shared,
    complaints: &[],
    run: bound,
};

/// RT CPUs, one of each socket or core; 0 and 2 are the NRT CPUs.
const RT: Cpus = Cpus(0b1010);
/// Where a real-time task computes.
const HOGGED: Cpus = Cpus(0b0010);
/// Evictions that are provoked, and times that it is tried at most.
const PROVOKED: u64 = 50;
const TURNS: u32 = 400;
/// Evictions that must go where they should, percent; 96 to 100 do. By chance it is half of them. It
/// is 0 where the nearest idle CPU is not preferred, and where a task goes back to its last NRT CPU
/// beside a real-time task.
const RIGHT_PCT: u64 = 90;
/// Evictions with a choice, without which a window shows nothing.
const ENOUGH: u64 = 30;
/// Idle part of a CPU while there are more computing tasks than CPUs; 0.00 was seen.
const IDLE: f64 = 0.1;
/// CPUs that are idle in the 10 ms after such tasks may leave the one CPU that they were bound to: 1.08
/// where they are not woken, else 0.02 to 0.16 (12 runs). It is the wait for the turn of a virtual CPU,
/// which keeps its phase through a run.
const WIDENED_IDLE: f64 = 0.5;
/// Times that tasks bound to one CPU may leave it.
const WIDENED: usize = 30;
/// Variation of the run time of four tasks of which three began on one socket; 0.00 was seen, and
/// 0.58 where they stay there.
const VARIATION: f64 = 0.05;

fn two_llcs(ctx: &Ctx) -> Result<Outcome> {
    let caches = [
        cpus_with(0, "cache/index3/shared_cpu_list")?,
        cpus_with(2, "cache/index3/shared_cpu_list")?,
    ];
    ensure!(caches == [Cpus(0b0011), Cpus(0b1100)], "the guest's caches: {caches:?}");
    let ctx = &ctx.with_rt(RT)?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut daemon = ctx.load(&[])?;
    for (from, own) in [(1, 0), (3, 2)] {
        let seen = evictions(ctx, &mut observer, None, from, "two sockets")?;
        let choice = |e: &Eviction| e.from == from && e.idle >> own & 1 == 1;
        right(&seen, choice, own, &format!("from CPU {from} with CPU {own} idle"))?;
    }
    daemon.ensure_loaded("after the evictions")?;

    let mut workers = Workers::start("six", [Kind::Spin; 6].map(Spec::new))?;
    workers.wait_begun()?;
    let first = observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    pause(2.0);
    let before = observer.snapshot()?;
    workers.ensure_progress(10.0, "on two sockets")?;
    let mut seen = observer.snapshot()?.since(&before);
    seen.tasks.drain(..first);
    daemon.ensure_loaded("with computing tasks")?;
    drop(workers);
    evened_out(&mut observer)?;
    daemon.finish()?;
    say(&format!("six computing tasks: {}", seen.table()));
    all_busy(ctx, &seen)?;
    Ok(Outcome::Passed)
}

/// Three tasks of one socket and one of the other, which only the NRT CPUs run, since they enter the
/// kernel all the time: two on each socket in the end.
fn evened_out(observer: &mut Occupancy) -> Result<()> {
    let mut workers = Workers::start("entering", [Kind::Enter; 8].map(Spec::new))?;
    workers.wait_begun()?;
    let first = observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    let tasks = &observer.over(1.0)?.tasks[first..];
    let (one, other): (Vec<usize>, Vec<usize>) =
        (0..workers.len()).partition(|i| tasks[*i].run_ns[&0] > 0);
    say(&format!("on the sockets are the tasks {one:?} and {other:?}"));
    let (most, least) = if one.len() > other.len() { (one, other) } else { (other, one) };
    ensure!(most.len() >= 3 && !least.is_empty(), "control: no three tasks here and one there");
    let kept = [&most[..3], &least[..1]].concat();
    for i in (0..workers.len()).filter(|i| !kept.contains(i)) {
        workers.freeze_one(i, true)?;
    }
    pause(1.0);
    let mut seen = observer.over(4.0)?;
    seen.tasks = kept.iter().map(|i| seen.tasks[first + i].clone()).collect();
    let (part, cv) = mean_cv(&seen.parts());
    say(&format!("tasks that enter the kernel: {}", seen.table()));
    say(&format!("  run time {part:.3} of a CPU each, CV {cv:.3}"));
    ensure!(cv <= VARIATION, "run time of the four varies by {cv:.3}");
    Ok(())
}

/// No CPU is idle.
fn all_busy(ctx: &Ctx, seen: &Snapshot) -> Result<()> {
    for cpu in ctx.all().iter() {
        ensure!(seen.idle(cpu) <= IDLE, "CPU {cpu} was idle for {:.2}", seen.idle(cpu));
    }
    Ok(())
}

fn bound(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus::one(3))?;
    let mut daemon = ctx.load(&[])?;
    let spin = |cpus| Spec::new(Kind::Spin).on(Cpus(cpus));
    let group = Cgroup::with("socket", "cpuset")?;
    group.set("cpuset.cpus", "0-1")?;
    let of_group = Spec { cgroup: Some(group.procs()), ..Spec::new(Kind::Spin) };
    let specs = std::iter::repeat_n(of_group, 5).chain([spin(0b0100)]);
    // one that stands still from its start on never begins
    let mut workers = Workers::start("bound", specs)?;
    let rates = workers.rates(12.0);
    say(&format!("work of each: {rates:?}"));
    workers.ensure_alive("bound to a socket")?;
    daemon.ensure_loaded("with tasks bound to a socket")?;
    group.set("cpuset.cpus", "2-3")?;
    workers.ensure_progress(3.0, "when their cpuset is the other socket")?;
    daemon.ensure_loaded("with tasks bound to the other socket")?;
    drop((workers, group));

    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let mut workers = Workers::start("widened", std::iter::repeat_n(spin(0b0001), 5))?;
    workers.wait_begun()?;
    let bind =
        |cpus: Cpus| (0..workers.len()).try_for_each(|i| cpus.bind(workers.pid(i).cast_signed()));
    let mut idle = Vec::new();
    for _ in 0..WIDENED {
        bind(Cpus::one(0))?;
        pause(0.02);
        bind(ctx.all())?;
        let seen = observer.over(0.01)?;
        idle.push(ctx.all().iter().map(|cpu| seen.idle(cpu)).sum::<f64>());
    }
    say(&format!("five tasks may leave CPU 0, CPUs idle in the first 10 ms: {idle:.2?}"));
    let (idle, _) = mean_cv(&idle);
    workers.ensure_progress(3.0, "allowed on all CPUs")?;
    daemon.ensure_loaded("with tasks allowed on all CPUs")?;
    drop(workers);
    daemon.finish()?;
    ensure!(idle <= WIDENED_IDLE, "{idle:.3} CPUs were idle while five tasks could run there");
    Ok(Outcome::Passed)
}

fn smt(ctx: &Ctx) -> Result<Outcome> {
    let siblings = [
        cpus_with(0, "topology/thread_siblings_list")?,
        cpus_with(2, "topology/thread_siblings_list")?,
    ];
    ensure!(siblings == [Cpus(0b0011), Cpus(0b1100)], "the guest's cores: {siblings:?}");
    let ctx = &ctx.with_rt(RT)?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    // real-time tasks that the programs see begin before the scheduler is in charge, and not end
    let tick = |cpu| Spec::new(Kind::Tick).on(Cpus::one(cpu)).fifo(50);
    let mut ticks = Workers::start("ticks", [2, 3].map(tick))?;
    ticks.wait_begun()?;
    let mut daemon = ctx.load(&[])?;
    ticks.ensure_progress(0.5, "with the scheduler in charge")?;
    drop(ticks);
    evictions(ctx, &mut observer, None, 3, "no real-time task")?;
    let mut hog = Workers::start("hog", [Spec::new(Kind::Spin).on(HOGGED).fifo(50)])?;
    hog.wait_begun()?;
    let seen = evictions(ctx, &mut observer, Some(0), 3, "a real-time task on CPU 1")?;
    daemon.ensure_loaded("after the evictions")?;
    drop(hog);
    daemon.finish()?;
    right(
        &seen,
        |e| e.from == 3 && e.idle & 0b101 == 0b101,
        2,
        "from CPU 3 with both NRT CPUs idle",
    )?;
    Ok(Outcome::Passed)
}

/// The CPUs in a list that sysfs has about a CPU.
fn cpus_with(cpu: u32, list: &str) -> Result<Cpus> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/{list}");
    fs::read_to_string(&path).with_context(|| path.clone())?.trim().parse()
}

/// Evictions from an RT CPU, by kind. A task that computes for 6 ms between its entries is
/// bound to that CPU, after an NRT CPU `before` where its caches are then, and allowed to leave it: it
/// does when it enters the kernel next.
/// Nothing else runs on the NRT CPUs then, but for what the machine itself does. What binds it is a
/// real-time task, too, and keeps to the other RT CPU: on `from` it would have preempted the task, which
/// is placed anew then instead of evicted (31 to 47 evictions in 400 turns, instead of 50 in 130).
fn evictions(
    ctx: &Ctx,
    observer: &mut Occupancy,
    before: Option<u32>,
    from: u32,
    when: &str,
) -> Result<BTreeMap<Eviction, u64>> {
    let mut workers = Workers::start("leaves", [Spec::new(Kind::Mixed)])?;
    workers.wait_begun()?;
    let pid = workers.pid(0);
    let slot = observer.watch([pid])?;
    observer.drain_evictions()?;
    let only = Cpus::one(from);
    RT.without(only).bind(0)?;
    for _ in 0..TURNS {
        if observer.snapshot()?.tasks[slot].evictions >= PROVOKED {
            break;
        }
        for cpu in before.into_iter().chain([from]) {
            Cpus::one(cpu).bind(pid.cast_signed())?;
            pause(0.010);
        }
        Cpus(only.0 | ctx.nrt.0).bind(pid.cast_signed())?;
        pause(0.020);
    }
    ctx.all().bind(0)?;
    workers.ensure_progress(0.5, when)?;
    let seen = observer.drain_evictions()?;
    let kind = |(e, n): (&Eviction, &u64)| {
        let idle = if e.idle == 0 { "none".to_string() } else { Cpus(e.idle).to_string() };
        format!("{} to {} with {idle} idle: {n}", e.from, e.to)
    };
    say(&format!("{when}: evictions {}", seen.iter().map(kind).collect::<Vec<_>>().join("; ")));
    Ok(seen)
}

/// Of the evictions with this choice, most must go to that CPU.
fn right(
    seen: &BTreeMap<Eviction, u64>,
    choice: impl Fn(&Eviction) -> bool,
    to: u32,
    what: &str,
) -> Result<()> {
    let sum = |fit: &dyn Fn(&Eviction) -> bool| -> u64 {
        seen.iter().filter(|(e, _)| choice(e) && fit(e)).map(|(_, n)| n).sum()
    };
    let (all, good) = (sum(&|_| true), sum(&|e| e.to == to));
    enough(all, ENOUGH, &format!("evictions {what}"))?;
    ensure!(good * 100 >= all * RIGHT_PCT, "{good} of {all} evictions {what} went to CPU {to}");
    Ok(())
}
