// SPDX-License-Identifier: GPL-2.0-only
//! The promise itself: no endangering body on an RT CPU, and still they compute.

use anyhow::{Context, Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Daemon;
use crate::guest::{cpu_ticks, pause};
use crate::load::{Load, Workers, mix};
use crate::observe::{Observer, Report};
use crate::worker::{Kind, Spec};

/// Length of the window that must be clean.
const WINDOW: f64 = 5.0;
/// Of their time that RT CPUs must have spent in user mode.
const RT_USED_PERCENT: u64 = 50;

/// The scheduler's own counter of what the observer counts.
const OWN: &str = "bodies_on_rt";

/// Catches: a hook that does not preempt before the body (no kick, another
/// attach type), placement of a waking or new task that is in a kernel section
/// on an RT CPU, page faults without a hook; and a scheduler that is clean
/// because it does not use the RT CPUs.
pub const ZERO_BODIES: Scenario = Scenario {
    name: "zero_bodies",
    what: "no endangering body and no user fault on RT CPUs under load, by an observer of its own",
    scope: Scope::Everywhere,
    run: |ctx| zero_bodies(ctx, false),
};

/// Catches: calls that are tolerated although `--strict` was asked for.
pub const ZERO_BODIES_STRICT: Scenario = Scenario {
    name: "zero_bodies_strict",
    what: "with --strict no body of any call on RT CPUs",
    scope: Scope::Full,
    run: |ctx| zero_bodies(ctx, true),
};

fn specs() -> impl Iterator<Item = Spec> {
    use Kind::{Call, Exec, Fork, Sleep, Spin, Thread, Touch};
    [Spin, Spin, Spin, Spin, Sleep, Sleep, Call, Call, Touch, Touch, Fork, Exec, Thread]
        .into_iter()
        .map(Spec::new)
}

fn zero_bodies(ctx: &Ctx, strict: bool) -> Result<Outcome> {
    let mut observer = Observer::attach(ctx.rt, strict)?;
    say("the observer is attached");
    let mut loads = mix()?;
    let mut workers = Workers::start("bodies", specs())?;
    workers.wait_begun()?;
    say("the load runs");
    control(&mut observer)?;

    // the verifier is slow enough in emulation without a load; the tasks stay
    freeze(&loads, &workers, true)?;
    let mut daemon = ctx.load(if strict { &["--strict"] } else { &[] })?;
    freeze(&loads, &workers, false)?;
    // tasks that were in a body when the scheduler came are not known to it yet
    pause(1.5);
    window(ctx, &daemon, &mut observer)?;
    daemon.ensure_loaded("after the window")?;
    for l in &mut loads {
        l.ensure_runs()?;
    }
    workers.ensure_progress(2.0, "under artis")?;
    drop((workers, loads));
    daemon.finish().context("after the window")?;
    Ok(Outcome::Passed)
}

/// Can the observer see? Under the kernel's default it must.
fn control(observer: &mut Observer) -> Result<()> {
    let seen = observer.watch(2.0)?;
    tell("kernel's default", &seen);
    ensure!(seen.rt.endangering > 1000, "control: the observer is blind on RT CPUs");
    ensure!(seen.rt.faults > 100, "control: the observer sees no faults on RT CPUs");
    ensure!(seen.rt.resumed > 100, "control: the observer sees no resumed tasks");
    Ok(())
}

/// The window that must be clean, while the RT CPUs are used.
fn window(ctx: &Ctx, daemon: &Daemon, observer: &mut Observer) -> Result<()> {
    let (before, own) = (ticks(ctx.rt)?, daemon.stats()?.counter(OWN)?);
    let seen = observer.watch(WINDOW)?;
    let after = ticks(ctx.rt)?;
    let own = daemon.stats()?.counter(OWN)? - own;
    let (user, total) = (after.0 - before.0, after.1 - before.1);
    tell("artis", &seen);
    say(&format!("RT CPUs in user mode: {} %", user * 100 / total.max(1)));
    if seen.offences() > 0 || own > 0 {
        say(&format!("the scheduler's own view: {}", daemon.stats()?.read()?));
    }
    ensure!(
        seen.offences() == 0,
        "on RT CPUs: {} bodies, {} faults, {} resumed\n{}",
        seen.rt.endangering,
        seen.rt.faults,
        seen.rt.resumed,
        seen.culprits()
    );
    ensure!(own == 0, "the scheduler itself counted {own} bodies on RT CPUs, the observer none");
    ensure!(seen.nrt.endangering > 5000, "only {} bodies on NRT CPUs", seen.nrt.endangering);
    ensure!(seen.nrt.faults > 500, "only {} faults on NRT CPUs", seen.nrt.faults);
    ensure!(
        user * 100 >= total * RT_USED_PERCENT,
        "clean, but unused: RT CPUs spent {user} of {total} ticks in user mode"
    );
    Ok(())
}

fn freeze(loads: &[Load], workers: &Workers, on: bool) -> Result<()> {
    workers.freeze(on)?;
    loads.iter().try_for_each(|l| l.freeze(on))
}

fn tell(who: &str, r: &Report) {
    say(&format!(
        "{who}, {:.1} s: RT {} endangering, {} other, {} faults, {} resumed; \
         NRT {} endangering, {} other, {} faults; missed {}",
        r.secs,
        r.rt.endangering,
        r.rt.other,
        r.rt.faults,
        r.rt.resumed,
        r.nrt.endangering,
        r.nrt.other,
        r.nrt.faults,
        r.missed
    ));
}

/// (user, all) ticks of all these CPUs.
fn ticks(cpus: Cpus) -> Result<(u64, u64)> {
    let mut sum = (0, 0);
    for c in cpus.iter() {
        let (user, all) = cpu_ticks(c)?;
        sum = (sum.0 + user, sum.1 + all);
    }
    Ok(sum)
}
