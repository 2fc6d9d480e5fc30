// SPDX-License-Identifier: GPL-2.0-only
//! The moment in which the kernel hands the machine over.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::daemon::Daemon;
use crate::figure::figure;
use crate::guest::{self, PATIENCE};
use crate::load::Workers;
use crate::policy::living_children;
use crate::worker::{Kind, Spec};

/// Catches: a takeover that never ends. To 6.18 tasks that are forked meanwhile are of the ext class,
/// beneath all others, which are still of the fair class: one that is preempted in an RCU read-side
/// section by tasks that compute does not go on, and the kernel waits for the end of all such sections.
pub const TAKEOVER: Scenario = Scenario {
    name: "takeover",
    what: "takes over although children that are forked meanwhile starve in RCU readers",
    scope: Scope::First,
    boot: &[],
    secs: 25,
    host: Host::Alone,
    complaints: &[],
    run: takeover,
};

const TIMES: u32 = 3;
/// So often a child must have been of the ext class meanwhile; it was nine times of ten.
const MET_MIN: u64 = 1;

fn takeover(ctx: &Ctx) -> Result<Outcome> {
    let cpus = ctx.all().iter().count();
    let mut forking = Workers::start("forking", vec![Spec::new(Kind::Brood); 2 * cpus])?;
    let mut computing = Workers::start("computing", vec![Spec::new(Kind::Spin); 4 * cpus])?;
    forking.wait_begun()?;
    computing.wait_begun()?;
    let (mut met, mut longest) = (0, Duration::ZERO);
    for turn in 1..=TIMES {
        computing.freeze(true)?;
        let began = Instant::now();
        let mut daemon = Daemon::begin(&ctx.program, &["--rt-cpus", &ctx.rt.to_string()])?;
        met += u64::from(child_of_ext(&forking)?);
        computing.freeze(false)?;
        daemon.wait_enabled().with_context(|| format!("in turn {turn}"))?;
        let took = began.elapsed();
        say(&format!("in charge {took:.2?} after exec, {met} times a child was of the ext class"));
        longest = longest.max(took);
        forking.ensure_progress(5.0, "under artis")?;
        daemon.finish()?;
    }
    figure("longest", format!("{:.1}", longest.as_secs_f64()), "s");
    enough(met, MET_MIN, "takeovers with a child of the ext class")?;
    Ok(Outcome::Passed)
}

/// Waits until a child of `parents` is of the ext class; false: the scheduler is in charge before.
fn child_of_ext(parents: &Workers) -> Result<bool> {
    let began = Instant::now();
    while !guest::artis_enabled() {
        if guest::scx_state()? == "enabling" && has_child_of_ext(parents)? {
            return Ok(guest::scx_state()? == "enabling");
        }
        ensure!(began.elapsed() < PATIENCE, "the scheduler does not take over");
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(false)
}

fn has_child_of_ext(parents: &Workers) -> Result<bool> {
    let pids: Vec<_> = (0..parents.len()).map(|i| parents.pid(i).cast_signed()).collect();
    Ok(living_children(&pids)?.into_iter().any(is_of_ext))
}

/// Is the task of the ext class? One that has ended is not.
fn is_of_ext(pid: i32) -> bool {
    let figures = fs::read_to_string(format!("/proc/{pid}/sched")).unwrap_or_default();
    let line = figures.lines().find(|line| line.starts_with("ext.enabled"));
    line.is_some_and(|line| line.trim_end().ends_with('1'))
}
