// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that change: where they may run, whether they exist.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::{self, pause};
use crate::load::{Load, Workers};
use crate::observe::Observer;
use crate::worker::{Kind, Spec};

/// Catches: a task sent to a CPU that it may no longer use (the kernel ejects
/// the scheduler), a mask read once, a task left in the queue of a CPU that it
/// lost, an eviction of one that has no NRT CPU.
pub const AFFINITY: Scenario = Scenario {
    name: "affinity",
    what: "a storm of affinity changes: nothing is ejected, everyone runs, pinned ones are counted",
    scope: Scope::Both,
    boot: &[],
    secs: 14,
    host: Host::Alone,
    complaints: &[],
    run: affinity,
};

fn affinity(ctx: &Ctx) -> Result<Outcome> {
    use Kind::{Call, Fork, Sleep, Spin, Touch};
    let mut observer = Observer::attach(ctx.rt, false)?;
    let mut daemon = ctx.load(&[])?;
    let kinds = [Spin, Spin, Spin, Spin, Call, Call, Call, Sleep, Sleep, Touch, Touch, Fork];
    let mut workers = Workers::start("flip", kinds.map(Spec::new))?;
    let mut pinned = Workers::start("pinned", [Call, Spin].map(|k| Spec::new(k).on(ctx.rt)))?;
    workers.wait_begun()?;
    pinned.wait_begun()?;
    observer.begin()?;
    let flips = storm(ctx, &workers, Duration::from_secs(5), 4)?;
    let seen = observer.end()?;
    say(&format!("{flips} changes; pinned tasks did {} bodies on RT CPUs", seen.rt.pinned));
    daemon.ensure_loaded("after the storm")?;
    ensure!(flips > 200, "only {flips} changes were made");
    for i in 0..workers.len() {
        ctx.all().bind(workers.pid(i).cast_signed())?;
    }
    workers.ensure_progress(2.0, "after the storm")?;
    pinned.ensure_progress(2.0, "bound to RT CPUs")?;
    ensure!(seen.rt.pinned > 0, "tasks bound to RT CPUs entered no call there");
    let counted = daemon.stats()?.counter("exempt_pinned")?;
    say(&format!("the scheduler counted {counted} entries of pinned tasks"));
    ensure!(counted > 0, "the scheduler counts no entries of pinned tasks");
    drop((workers, pinned));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Binds workers at random to the RT CPUs, the NRT CPUs, one CPU, or all, with a millisecond after each
/// `at_once` changes. Returns how many there were.
pub(super) fn storm(ctx: &Ctx, workers: &Workers, length: Duration, at_once: u64) -> Result<u64> {
    let one = |n: u64| Cpus::one(ctx.all().iter().cycle().nth((n % 64) as usize).unwrap_or(0));
    let (start, mut flips, mut x) = (Instant::now(), 0u64, 0x2545_f491_4f6c_dd1du64);
    while start.elapsed() < length {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let set = [ctx.rt, ctx.nrt, ctx.all(), one(x >> 32)][(x >> 8) as usize % 4];
        set.bind(workers.pid(x as usize % workers.len()).cast_signed())?;
        flips += 1;
        if flips % at_once == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(flips)
}

/// Catches: state of tasks that is not made, not found, or used after the task
/// ended; exiting tasks sent where they may not go.
pub const STORMS: Scenario = Scenario {
    name: "storms",
    what: "storms of fork, exec, exit and threads: still loaded, everyone runs",
    scope: Scope::Both,
    boot: &[],
    secs: 14,
    host: Host::Alone,
    complaints: STRESSOR,
    run: storms,
};

/// Catches: memory of the kernel used after it was freed, or written beyond its end: the kernel
/// says `BUG …` then, which fails any scenario.
pub const STORMS_CHECKED: Scenario = Scenario {
    name: "storms_checked",
    what: "the same while the kernel checks and poisons each object that it allocates",
    scope: Scope::First,
    boot: &["--append", "slab_debug=FZPU"],
    secs: 20,
    host: Host::Alone,
    complaints: STRESSOR,
    run: |ctx| {
        let poisoned = guest::line("/sys/kernel/slab/task_struct/poison")?;
        ensure!(poisoned == "1", "control: the kernel does not check its objects");
        storms(ctx)
    },
};

/// A crash of stress-ng's stressor in user mode, which the kernel tells of. stress-ng 0.15.06 has it
/// without any sched_ext, too: at the same address, in 375 runs of --pthread 4 that SIGTERM ended after
/// 10 to 90 ms, twice.
const STRESSOR: &[&str] = &["traps: stress-ng-pthre["];

fn storms(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&[])?;
    let mut loads = vec![
        Load::stress("--fork 2 --pthread 2 --clone 1")?,
        Load::shell("while :; do true | cat | cat >/dev/null; (:) & wait; done")?,
        Load::shell("while :; do timeout -s KILL 0.05 sh -c 'while :; do (:); done'; done")?,
    ];
    use Kind::{Exec, Fork, Sleep, Spin, Thread, Tick};
    let on =
        |cpus| [Spec::new(Fork).on(cpus), Spec::new(Thread).on(cpus), Spec::new(Exec).on(cpus)];
    let specs = [Spin, Spin, Sleep, Fork, Fork, Exec, Exec, Thread, Thread].map(Spec::new);
    // each CPU has a task that preempts others wherever they are, also on their way out
    let fifo = ctx.all().iter().map(|cpu| Spec::new(Tick).fifo(50).on(Cpus::one(cpu)));
    let specs = specs.into_iter().chain(on(ctx.rt)).chain(on(ctx.nrt)).chain(fifo);
    let mut workers = Workers::start("storm", specs)?;
    workers.wait_begun()?;
    for part in 1..=3 {
        workers.ensure_progress(2.5, &format!("in part {part} of the storm"))?;
        daemon.ensure_loaded(&format!("in part {part} of the storm"))?;
    }
    for l in &mut loads {
        l.ensure_runs()?;
    }
    drop((workers, loads));
    pause(0.5);
    daemon.ensure_loaded("after the storm")?;
    daemon.finish()?;
    Ok(Outcome::Passed)
}
