// SPDX-License-Identifier: GPL-2.0-only
//! How late periodic tasks wake up.

use anyhow::{Result, ensure};

use super::rt1::on_rt_min;
use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::guest::pause;
use crate::load::Workers;
use crate::periodic::{Spec as Periodic, Told, told};
use crate::worker::{Kind, Spec};

/// Catches: an RT1+ task that wakes up late, as one that waits for the end of a slice.
pub const RT1_WAKES: Scenario = Scenario {
    name: "rt1_wakes",
    what: "an adopted task of 1 ms period wakes up as a SCHED_FIFO task does, on RT CPUs",
    scope: Scope::Both,
    boot: &[],
    secs: 16,
    timed: true,
    complaints: &[],
    run: rt1_wakes,
};

fn periodic(what: &str, rt_cpus: Cpus, cpus: Option<Cpus>, fifo: i32) -> Result<Told> {
    let spec =
        Periodic { period_us: 1000, duty_pct: 20, wakeups: 1000, rt_cpus, cpus, fifo: Some(fifo) };
    let told = told(&spec)?;
    say(&format!("{what}: {told:?}"));
    Ok(told)
}

/// The median wake-up may be so many times later than that of the same task as SCHED_FIFO under
/// the kernel's default. 1.6 to 2.6 on 6.18 and 7.3 and 1.2 to 5.3 on 7.0 PREEMPT_RT were seen; 50
/// there when it waited for the end of a slice.
const LATER: u64 = 10;
/// What is added to the default's median: a few µs are nothing to multiply.
const AT_LEAST_NS: u64 = 100_000;

fn rt1_wakes(ctx: &Ctx) -> Result<Outcome> {
    use Kind::{Call, Enter, Mixed, Spin};
    let nrt = [Spin, Spin, Spin, Spin, Enter, Enter, Call, Mixed];
    let mut workers = Workers::start("nrt", nrt.map(Spec::new))?;
    workers.wait_begun()?;
    let control = periodic("SCHED_FIFO, kernel's default", ctx.rt, None, 50)?.median_ns;
    let mut daemon = ctx.load(&["--adopt"])?;
    pause(2.0);
    let Told { median_ns, on_rt, .. } = periodic("adopted", ctx.rt, None, 50)?;
    daemon.ensure_loaded("after the window")?;
    drop(workers);
    daemon.finish()?;
    ensure!(
        median_ns <= LATER * (control + AT_LEAST_NS),
        "half of the wake-ups were later than {median_ns} ns, {control} ns by default"
    );
    ensure!(on_rt >= on_rt_min(), "it ran on RT CPUs for {:.1} % of its time", on_rt * 100.0);
    Ok(Outcome::Passed)
}
