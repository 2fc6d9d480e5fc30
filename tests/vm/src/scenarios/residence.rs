// SPDX-License-Identifier: GPL-2.0-only
//! For how long tasks that could leave are in the kernel on RT CPUs, by an observer that is not the
//! scheduler.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::preempt::{KNOB, USUAL};
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Stats;
use crate::figure::figure;
use crate::guest::{PATIENCE, until, write};
use crate::hold::Hold;
use crate::moves::{BODY, Observer, RT_SIDE};
use crate::policy::gettid;

/// Catches: time of kernel sections on RT CPUs that the daemon does not tell, or tells wrong.
/// Without preemption, a call of [`HOLD`] is a section of [`HOLD`]. Virtual time counts instructions:
/// the host can halt for milliseconds between the hooks of the two, so that one of them has it in the
/// section and the other has not.
pub const RESIDENCE: Scenario = Scenario {
    name: "residence",
    what: "kernel sections on RT CPUs are as long as the daemon says",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 8,
    host: Host::Shared,
    complaints: &[],
    run: residence,
};

/// Calls on the RT CPU without which nothing is shown, and for how long each of them holds it.
const CALLS: f64 = 5.0;
const HOLD: Duration = Duration::from_millis(100);
/// How far what the daemon tells may be from what the observer saw, a share of the latter. Seen: none,
/// to 1 us; 1 when the time is not added up.
const APART_MAX: f64 = 0.001;

/// What the daemon has counted since its last reading: time of sections on RT CPUs, and, since it
/// began, the longest of them, us.
fn told(stats: &mut Stats) -> Result<[f64; 2]> {
    let all = stats.read()?;
    let number = |name| all.get(name).and_then(Value::as_f64).with_context(|| format!("no {name}"));
    Ok([number("residence_us_per_s")? * number("interval_s")?, number("residence_max_us")?])
}

/// A thread on this RT CPU that may leave it makes a call of [`HOLD`], its first entry into the
/// kernel since it may.
fn calls(ctx: &Ctx, rt: Cpus, hold: &Hold) -> Result<()> {
    let (bound, free) = (AtomicI32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let caller = scope.spawn(|| -> Result<()> {
            rt.bind(0)?;
            bound.store(gettid(), Ordering::Release);
            while !free.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            hold.hold()
        });
        until("the caller is bound to the RT CPU", PATIENCE, || {
            Ok(caller.is_finished() || bound.load(Ordering::Acquire) > 0)
        })?;
        let widened = ctx.all().bind(bound.load(Ordering::Acquire));
        free.store(true, Ordering::Release);
        caller.join().map_err(|_| anyhow!("the caller panicked"))?.and(widened)
    })
}

/// What the observer has seen: the time of all sections and the longest, us.
fn seen(observer: &Observer) -> Result<[f64; 2]> {
    let times = observer.times()?;
    let times = [&times[RT_SIDE], &times[BODY]];
    let sum_ns = times.map(|t| t.sum_ns).iter().sum::<u64>();
    let max_ns = times.map(|t| t.max_ns).into_iter().max().unwrap_or_default();
    Ok([sum_ns, max_ns].map(|ns| ns as f64 / 1e3))
}

fn residence(ctx: &Ctx) -> Result<Outcome> {
    ctx.nrt.bind(0)?;
    write(KNOB, "none")?;
    let mut observer = Observer::attach(ctx.rt, false)?;
    let mut daemon = ctx.load(&[])?;
    let mut stats = daemon.stats()?;
    told(&mut stats)?;
    observer.start()?;
    let (rt, hold) = (Cpus::one(ctx.rt.first()?), Hold::load(HOLD)?);
    let enough_us = HOLD.as_micros() as f64 * CALLS;
    // a caller that has to wait for its turn first makes the call on another CPU
    until("there were enough calls on the RT CPU", PATIENCE, || {
        calls(ctx, rt, &hold)?;
        Ok(seen(&observer)?[0] >= enough_us)
    })?;
    observer.stop()?;
    let [sum_us, max_us] = seen(&observer)?;
    let [told_us, told_max_us] = told(&mut stats)?;
    say(&format!(
        "sections: {told_us:.0} us, longest {told_max_us:.0}; by the observer {sum_us:.0} us, \
         longest {max_us:.0}"
    ));
    let (sum, max) = (told_us / sum_us - 1.0, told_max_us / max_us - 1.0);
    figure("residence_sum_apart", format!("{sum:.4}"), "shares");
    figure("residence_max_apart", format!("{max:.4}"), "shares");
    ensure!(sum.abs() <= APART_MAX, "the daemon's sum is off by {sum:+.3} of the observer's");
    ensure!(
        max.abs() <= APART_MAX,
        "the daemon's longest section is off by {max:+.3} of the observer's"
    );
    daemon.ensure_loaded("after the calls")?;
    daemon.finish()?;
    write(KNOB, USUAL)?;
    ctx.all().bind(0)?;
    Ok(Outcome::Passed)
}
