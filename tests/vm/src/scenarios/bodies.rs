// SPDX-License-Identifier: GPL-2.0-only
//! The promise itself: no endangering body on an RT CPU, and still they compute.

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::daemon::{Daemon, Stats};
use crate::figure::figure;
use crate::guest::{cpu_ticks, pause};
use crate::load::{Load, Workers, mix};
use crate::observe::{Observer, Report};
use crate::worker::{Kind, Spec};

/// Length of each window that must be clean, and of the one before the scheduler comes, s.
const WINDOW: f64 = 4.0;
/// Of their time that RT CPUs must have spent in user mode under full load.
const RT_USED_PERCENT: u64 = 25;
/// Evictions without which the windows with idle RT CPUs show nothing, and the most windows that
/// are waited for them: whoever has learned that all tasks enter the kernel moves none.
const EVICTIONS: u64 = 6;
const WINDOWS: u32 = 5;

/// Catches: a hook that does not preempt before the body (no kick, another
/// attach type), placement of a waking or new task that is in a kernel section
/// on an RT CPU (with RT CPUs busy, and with RT CPUs that are often idle), page
/// faults without a hook; and a scheduler that is clean because it does not use
/// the RT CPUs.
pub const ZERO_BODIES: Scenario = Scenario {
    name: "zero_bodies",
    what: "no endangering body and no user fault on RT CPUs under load, by an observer of its own",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &[],
    run: |ctx| zero_bodies(ctx, false),
};

/// Catches: calls that are tolerated although `--strict` was asked for.
pub const ZERO_BODIES_STRICT: Scenario = Scenario {
    name: "zero_bodies_strict",
    what: "with --strict no body of any call on RT CPUs",
    scope: Scope::First,
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &[],
    run: |ctx| zero_bodies(ctx, true),
};

/// Tasks that enter the kernel, some of them after computing for long enough to
/// be taken for computing ones.
fn entering() -> impl Iterator<Item = Spec> {
    use Kind::{Call, Exec, Fork, Mixed, Sleep, Thread, Touch};
    [
        Mixed, Mixed, Mixed, Mixed, Mixed, Mixed, Sleep, Sleep, Call, Call, Touch, Touch, Fork,
        Exec, Thread,
    ]
    .into_iter()
    .map(Spec::new)
}

/// All that runs meanwhile.
struct Scene {
    /// stress-ng and hackbench; the first one only computes.
    loads: Vec<Load>,
    entering: Workers,
    computing: Workers,
}

impl Scene {
    fn start() -> Result<Self> {
        let loads = mix()?;
        let mut entering = Workers::start("enter", entering())?;
        let mut computing = Workers::start("compute", [Kind::Spin; 4].map(Spec::new))?;
        entering.wait_begun()?;
        computing.wait_begun()?;
        Ok(Self { loads, entering, computing })
    }

    fn freeze(&self, on: bool) -> Result<()> {
        self.entering.freeze(on)?;
        self.computing.freeze(on)?;
        self.loads.iter().try_for_each(|l| l.freeze(on))
    }

    /// Without those that only compute: RT CPUs have idle time then.
    fn freeze_computing(&self) -> Result<()> {
        self.computing.freeze(true)?;
        self.loads.first().map_or(Ok(()), |l| l.freeze(true))
    }
}

fn zero_bodies(ctx: &Ctx, strict: bool) -> Result<Outcome> {
    let mut observer = Observer::attach(ctx.rt, strict)?;
    say("the observer is attached");
    let mut scene = Scene::start()?;
    say("the load runs");
    control(&mut observer)?;

    // the verifier is slow enough in emulation without a load; the tasks stay
    scene.freeze(true)?;
    let mut daemon = ctx.load(if strict { &["--strict"] } else { &[] })?;
    scene.freeze(false)?;
    let outcome = windows(ctx, &mut daemon, &mut scene, &mut observer);
    drop(scene); // before the scheduler goes: under a load that takes long
    outcome?;
    say("the load is gone");
    daemon.finish().context("after the windows")?;
    Ok(Outcome::Passed)
}

fn windows(
    ctx: &Ctx,
    daemon: &mut Daemon,
    scene: &mut Scene,
    observer: &mut Observer,
) -> Result<()> {
    // tasks that were in a body when the scheduler came are not known to it yet
    pause(1.5);
    let Window { used, mut bodies, .. } = window("artis", ctx, daemon, observer)?;
    figure("rt_user_mode", used, "%");
    ensure!(used >= RT_USED_PERCENT, "clean, but RT CPUs spent only {used} % in user mode");
    scene.freeze_computing()?;
    let mut evictions = 0;
    for _ in 0..WINDOWS {
        let seen = window("artis, RT CPUs often idle", ctx, daemon, observer)?;
        (evictions, bodies) = (evictions + seen.evictions, bodies + seen.bodies);
        if evictions >= EVICTIONS {
            break;
        }
    }
    figure("bodies", bodies, "bodies");
    figure("evictions_rt_idle", evictions, "evictions");
    enough(evictions, EVICTIONS, "evictions")?;
    daemon.ensure_loaded("after the windows")?;
    for l in &mut scene.loads {
        l.ensure_runs()?;
    }
    scene.entering.ensure_progress(2.0, "under artis")
}

/// Can the observer see? Under the kernel's default it must.
fn control(observer: &mut Observer) -> Result<()> {
    let seen = observer.watch(WINDOW)?;
    tell("kernel's default", &seen);
    figure("bodies_before", seen.rt.endangering + seen.rt.faults, "bodies");
    ensure!(seen.rt.endangering > 1000, "control: the observer is blind on RT CPUs");
    ensure!(seen.rt.faults > 100, "control: the observer sees no faults on RT CPUs");
    ensure!(seen.rt.resumed > 5, "control: the observer sees no resumed tasks");
    ensure!(seen.rt.resumed_faults > 5, "control: it sees no tasks resumed inside a fault");
    Ok(())
}

/// What happened besides in a clean window.
struct Window {
    /// Percentage of their time that the RT CPUs spent in user mode.
    used: u64,
    evictions: u64,
    /// Of endangering calls and of user faults, begun on RT CPUs.
    bodies: u64,
}

/// Fails unless the next window is clean.
fn window(phase: &str, ctx: &Ctx, daemon: &Daemon, observer: &mut Observer) -> Result<Window> {
    let mut stats = daemon.stats()?;
    let mut counters = || -> Result<(u64, u64)> {
        let all = stats.read()?;
        let get = |name| Stats::counter_in(&all, name);
        Ok((get("bodies_on_rt")?, get("evictions")?))
    };
    let (before, old) = (ticks(ctx.rt)?, counters()?);
    let seen = observer.watch(WINDOW)?;
    let (after, new) = (ticks(ctx.rt)?, counters()?);
    let (own, evictions) = (new.0 - old.0, new.1 - old.1);
    let (user, total) = (after.0 - before.0, after.1 - before.1);
    let used = user * 100 / total.max(1);
    tell(phase, &seen);
    say(&format!("  {evictions} evictions; RT CPUs in user mode: {used} %"));
    if seen.offences() > 0 || own > 0 {
        say(&format!("  the scheduler's own view: {}", daemon.stats()?.read()?));
    }
    if !seen.offenders.is_empty() {
        say(&format!("  on RT CPUs:\n{}", seen.culprits().trim_end()));
    }
    seen.ensure_clean().with_context(|| phase.to_string())?;
    ensure!(own == 0, "the scheduler itself counted {own} bodies on RT CPUs, the observer none");
    ensure!(seen.nrt.endangering > 1000, "only {} bodies on NRT CPUs", seen.nrt.endangering);
    ensure!(seen.nrt.faults > 200, "only {} faults on NRT CPUs", seen.nrt.faults);
    Ok(Window { used, evictions, bodies: seen.rt.endangering + seen.rt.faults })
}

fn tell(phase: &str, r: &Report) {
    say(&format!(
        "{phase}, {:.1} s: RT {} endangering, {} other, {} faults, {} resumed, {} inside a fault; \
         NRT {} endangering, {} other, {} faults",
        r.secs,
        r.rt.endangering,
        r.rt.other,
        r.rt.faults,
        r.rt.resumed,
        r.rt.resumed_faults,
        r.nrt.endangering,
        r.nrt.other,
        r.nrt.faults
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
