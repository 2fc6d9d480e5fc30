// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that does not sleep, and the kernel's own threads of its CPU.

use std::collections::BTreeSet;
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::hog::{HOG_PRIORITY, KERNEL_PRIORITY};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::figure::figure;
use crate::guest::{self, pause, processes, run_time_ns};
use crate::kernel_threads::{Raised, realtime};
use crate::load::Workers;
use crate::policy::Policy;
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: kernel threads that starve beneath a hog, for which the kernel ejects the scheduler after
/// 30 s; one that stays SCHED_FIFO at the end, or when the daemon is killed meanwhile. `soak_hog`
/// shows that none counts as starving later.
pub const HOG_KERNEL: Scenario = Scenario {
    name: "hog_kernel",
    what: "beneath a FIFO hog the kernel's threads get a turn, and are what they were afterwards",
    // from 7.0 on the kernel's ext_server helps them
    scope: Scope::First,
    boot: &[],
    secs: 30,
    host: Host::Alone,
    complaints: &[],
    run: hog_kernel,
};

/// Read: each CPU's worker thread brings its counters up to date, and the call waits for all.
const EACH_CPU: &str = "/proc/sys/vm/stat_refresh";
/// There while a thread is changed.
const CHANGED: &str = "/run/scx_artis/kernel_threads.json";
/// Only a kernel without an ext_server leaves the threads to the daemon.
const SERVER: &str = "/sys/kernel/debug/sched/ext_server";
/// Turns, the last one under a second daemon.
const TURNS: u32 = 3;
/// What the second daemon says of the first one's.
const REPAIRED: &str = "kernel threads SCHED_FIFO: they are normal ones again";
/// Steers what comes by the loopback interface to CPUs.
const STEER: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus";
const FLOOD: Duration = Duration::from_secs(6);
/// Of the CPU, what a kernel thread has that never sleeps.
const FLOODED_MAX: f64 = 0.2;
/// See [`FLOODED_MAX`].
const FLOODED_MIN: f64 = 0.001;
/// After each.
const BETWEEN_S: f64 = 2.0;

fn hog_kernel(ctx: &Ctx) -> Result<Outcome> {
    let raised = Raised::to(KERNEL_PRIORITY)?;
    let (before, usual) = (Inventory::now(), realtime()?);
    let mut daemon = ctx.load(&[])?;
    let cpu = ctx.rt.first()?;
    let spin = Spec::new(Kind::Spin).on(Cpus::one(cpu));
    let mut hog = Workers::start("hog", [spin.fifo(HOG_PRIORITY)])?;
    hog.wait_begun()?;
    let mut most_s = 0.0_f64;
    for turn in 1..=TURNS {
        let asked = Instant::now();
        fs::read(EACH_CPU)?;
        let took = asked.elapsed().as_secs_f64();
        say(&format!("turn {turn}: each CPU's worker has run after {took:.2} s"));
        most_s = most_s.max(took);
        daemon.ensure_loaded("beside the hog")?;
        pause(BETWEEN_S);
        if turn != TURNS - 1 {
            continue;
        }
        let changed = new_since(&usual)?;
        say(&format!("changed: {changed:?}"));
        daemon.signal(Signal::SIGKILL)?;
        daemon.ended()?;
        ensure!(changed.is_empty() != Path::new(CHANGED).exists(), "{CHANGED} and {changed:?}");
        ensure!(changed.is_empty() == Path::new(SERVER).exists(), "it helps where the kernel does");
        daemon = ctx.load(&[])?;
        ensure!(changed.is_empty() != daemon.output().contains(REPAIRED), "{}", daemon.output());
    }
    if !Path::new(SERVER).exists() {
        flood(cpu, &hog)?;
    }
    figure("workers_have_run_at_most", format!("{most_s:.2}"), "s");
    hog.ensure_progress(1.0, "beside the kernel's threads")?;
    drop(hog);
    daemon.finish()?;
    let left = new_since(&usual)?;
    ensure!(left.is_empty(), "still of a real-time class: {left:?}");
    drop(raised);
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// Network packets keep a kernel thread of the CPU busy without an end: it does not take the CPU from
/// the hog for that.
fn flood(cpu: u32, hog: &Workers) -> Result<()> {
    let thread = kernel_thread(&format!("ksoftirqd/{cpu}"))?;
    guest::write(STEER, &format!("{:x}", 1_u64 << cpu))?;
    let end = Instant::now() + FLOOD;
    let (ran_ns, hog_ns) = (run_time_ns(thread)?, run_time_ns(hog.pid(0))?);
    thread::scope(|scope| {
        let flood = || {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            while Instant::now() < end {
                socket.send_to(&[0; 1_000], "127.0.0.1:9")?;
            }
            anyhow::Ok(())
        };
        let floods = [(); 2].map(|()| scope.spawn(flood));
        floods.into_iter().try_for_each(|flood| flood.join().expect("no panic"))
    })?;
    guest::write(STEER, "0")?;
    let share =
        |since_ns, pid| anyhow::Ok((run_time_ns(pid)? - since_ns) as f64 / FLOOD.as_nanos() as f64);
    let (thread, hog) = (share(ran_ns, thread)?, share(hog_ns, hog.pid(0))?);
    say(&format!("flooded: ksoftirqd has {thread:.3} of the CPU, the hog {hog:.3}"));
    figure("ksoftirqd", format!("{thread:.3}"), "CPUs");
    ensure!(thread >= FLOODED_MIN, "the flood does not reach CPU {cpu}");
    ensure!(thread <= FLOODED_MAX, "ksoftirqd has {thread:.3} of the hog's CPU");
    Ok(())
}

fn kernel_thread(name: &str) -> Result<u32> {
    let found = processes()?.into_iter().find(|(_, comm)| comm == name);
    let (pid, _) = found.with_context(|| format!("no {name}"))?;
    Ok(pid.cast_unsigned())
}

/// Kernel threads of SCHED_FIFO that are not in `usual`; those of sched_ext are there while a scheduler
/// is.
fn new_since(usual: &[(i32, Policy)]) -> Result<Vec<(i32, Policy)>> {
    let of_sched_ext: BTreeSet<_> = processes()?
        .into_iter()
        .filter(|(_, comm)| comm.starts_with("sched_ext"))
        .map(|(pid, _)| pid)
        .collect();
    let mut new = realtime()?;
    new.retain(|thread| !usual.contains(thread) && !of_sched_ext.contains(&thread.0));
    Ok(new)
}
