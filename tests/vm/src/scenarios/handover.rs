// SPDX-License-Identifier: GPL-2.0-only
//! How evicted tasks get from an RT CPU to an NRT CPU: nobody is lost on the way.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::daemon::{Daemon, Stats};
use crate::guest::{PATIENCE, pause, until};
use crate::load::Workers;
use crate::worker::{HOLD, Kind, Spec, set_fifo, set_nice};

/// Catches: evictions that do not take the FIFOs; a FIFO that is full or read too late, an
/// entry of a task that died, sleeps, changed its priority, class or affinity meanwhile, and
/// whoever is behind it: a task that nobody runs any more, or one that the kernel ejects
/// the scheduler for.
pub const HANDOVER: Scenario = Scenario {
    name: "handover",
    what: "evictions go through the FIFOs; overflow and tasks that change on the way lose nobody",
    scope: Scope::Nightly,
    boot: &[],
    secs: 54,
    host: Host::Timed,
    complaints: &[],
    run: handover,
};

/// Part of the evictions that must go through the FIFOs, percent.
const THROUGH_PCT: u64 = 50;
/// Evictions without which a window shows nothing.
const ENOUGH: u64 = 100;
/// Tasks on one RT and one NRT CPU. The RT CPU has a quarter to a third of them, more than the
/// FIFO of that pair holds (16).
const CROWD: usize = 96;
/// Crowds until a FIFO must have been full.
const CROWDS: usize = 3;
/// Above every ext task, below this program.
const HOLDS: i32 = 10;

fn handover(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&[])?;
    let through = through_fifos(&daemon)?;
    daemon.ensure_loaded("after evictions")?;
    let full = crowd(ctx, &daemon)?;
    daemon.ensure_loaded("after the crowd")?;
    storm(ctx, &daemon)?;
    daemon.ensure_loaded("after the storm")?;
    daemon.finish()?;
    let (evictions, handed) = through;
    enough(evictions, ENOUGH, "evictions")?;
    ensure!(
        handed * 100 >= evictions * THROUGH_PCT,
        "{handed} of {evictions} evictions went through the FIFOs"
    );
    ensure!(full > 0, "no FIFO was full: the crowd went some other way");
    Ok(Outcome::Passed)
}

/// What the scheduler counted meanwhile: evictions, handed over, FIFO full, stale entries.
fn counted(
    stats: &mut Stats,
    what: &str,
    mut meanwhile: impl FnMut() -> Result<()>,
) -> Result<[u64; 4]> {
    const NAMES: [&str; 4] = ["evictions", "handed_over", "handover_full", "handover_stale"];
    let mut read = || -> Result<Vec<u64>> {
        let all = stats.read()?;
        NAMES.iter().map(|n| Stats::counter_in(&all, n)).collect()
    };
    let before = read()?;
    meanwhile()?;
    let after = read()?;
    let seen = std::array::from_fn(|i| after[i] - before[i]);
    let told: Vec<String> = NAMES.iter().zip(seen).map(|(name, n)| format!("{name} {n}")).collect();
    say(&format!("{what}: {}", told.join(", ")));
    Ok(seen)
}

/// Evictions, and those through FIFOs, of tasks that compute for 6 ms between their entries.
fn through_fifos(daemon: &Daemon) -> Result<(u64, u64)> {
    let kinds = [Kind::Mixed; 8].into_iter().chain([Kind::Spin; 2]);
    let mut workers = Workers::start("through", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    let seen = counted(&mut daemon.stats()?, "8 mixed tasks", || {
        workers.ensure_progress(4.0, "while being evicted")
    })?;
    Ok((seen[0], seen[1]))
}

/// Many computing tasks enter the kernel at once while no NRT CPU can take them: real-time tasks
/// hold those, or the NRT CPU of the pair is in the kernel for long. Returns how often a FIFO was
/// full then.
fn crowd(ctx: &Ctx, daemon: &Daemon) -> Result<u64> {
    let holder = ctx.nrt.first()?;
    let pair = Cpus(Cpus::one(ctx.rt.first()?).0 | Cpus::one(holder).0);
    let crowd = |what| {
        let mut crowd = Workers::start(what, [Kind::Burst; CROWD].map(Spec::new))?;
        crowd.wait_begun()?;
        for i in 0..crowd.len() {
            pair.bind(crowd.pid(i).cast_signed())?;
        }
        pause(2.0);
        anyhow::Ok(crowd)
    };

    let mut beneath = crowd("beneath")?;
    counted(&mut daemon.stats()?, "a crowd evicted, real-time tasks on NRT CPUs", || {
        let holds = ctx.nrt.iter().map(|c| Spec::new(Kind::Spin).on(Cpus::one(c)).fifo(HOLDS));
        let mut holders = Workers::start("holds", holds)?;
        holders.wait_begun()?;
        beneath.board().start();
        pause(1.0);
        drop(holders);
        beneath.ensure_progress(6.0, "after the NRT CPUs were held")
    })?;
    drop(beneath);

    // how many of the crowd the RT CPU has is chance
    let mut full = 0;
    for _ in 0..CROWDS {
        let mut behind = crowd("behind")?;
        let mut kernel = Workers::start("kernel", [Spec::new(Kind::Hold).on(Cpus::one(holder))])?;
        kernel.wait_begun()?;
        full +=
            counted(&mut daemon.stats()?, "a crowd evicted, the NRT CPU in the kernel", || {
                // this program has to go on meanwhile
                ctx.all().without(Cpus::one(holder)).bind(0)?;
                kernel.board().start();
                until("the NRT CPU is held", PATIENCE, || Ok(kernel.counts()[0] > 1))?;
                behind.board().start();
                std::thread::sleep(HOLD);
                ctx.all().bind(0)?;
                behind.ensure_progress(6.0, "after the NRT CPU was held")
            })?[2];
        if full > 0 {
            break;
        }
    }
    Ok(full)
}

/// Tasks that are evicted all the time change in every way that a task can.
fn storm(ctx: &Ctx, daemon: &Daemon) -> Result<()> {
    use Kind::{Call, Enter, Fork, Mixed, Sleep, Touch};
    let kinds = [
        Mixed, Mixed, Mixed, Mixed, Mixed, Mixed, Enter, Enter, Enter, Enter, Touch, Touch, Call,
        Fork, Sleep,
    ];
    let mut workers = Workers::start("storm", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    let (mut killed, mut changed) = (0u32, 0u32);
    counted(&mut daemon.stats()?, "a storm of changes", || {
        let (began, mut x) = (Instant::now(), 0x2545_f491_4f6c_dd1du64);
        while began.elapsed() < Duration::from_secs(6) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let i = (x >> 32) as usize % workers.len();
            let pid = workers.pid(i);
            match x >> 16 & 63 {
                // a new process costs more than all else together
                0 => {
                    workers.replace(i)?;
                    killed += 1;
                }
                // not for longer: a few of them would keep everyone else from all CPUs
                1..=24 => {
                    set_fifo(pid, Some(5))?;
                    std::thread::sleep(Duration::from_micros(x >> 40 & 1023));
                    set_fifo(pid, None)?;
                }
                25..=44 => set_nice(pid, (x >> 24 & 15).cast_signed() as i32)?,
                n => [ctx.rt, ctx.nrt, ctx.all()][n as usize % 3].bind(pid.cast_signed())?,
            }
            changed += 1;
            std::thread::sleep(Duration::from_micros(x >> 8 & 1023));
        }
        Ok(())
    })?;
    say(&format!("  {changed} changes, {killed} of them deaths"));
    for i in 0..workers.len() {
        set_fifo(workers.pid(i), None)?;
        set_nice(workers.pid(i), 0)?;
        ctx.all().bind(workers.pid(i).cast_signed())?;
    }
    workers.ensure_progress(3.0, "after the storm")
}
