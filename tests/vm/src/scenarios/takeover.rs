// SPDX-License-Identifier: GPL-2.0-only
//! The moment in which the kernel hands the machine over.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::libc;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::Daemon;
use crate::guest::{PATIENCE, artis_enabled, until};
use crate::load::Workers;
use crate::policy::Policy;
use crate::worker::{Kind, Spec};

/// Catches: a takeover that never ends. To 6.18 a task that is given another policy meanwhile is of
/// the ext class, beneath all others, which are still of the fair class: in the midst of a fork it
/// does not run where others compute, and the kernel waits for the end of all forks.
pub const TAKEOVER: Scenario = Scenario {
    name: "takeover",
    what: "takes over although tasks do not run meanwhile that are in the midst of a fork",
    scope: Scope::First,
    boot: &[],
    secs: 25,
    host: Host::Alone,
    complaints: &[],
    run: takeover,
};

/// One of them has to be held up; nearly each is.
const TAKEOVERS_MAX: u32 = 8;
/// Looks at which the daemon waits for the end of forks, without which a takeover is not held up: 82 to
/// 280 in each of six, and none in each of four where all tasks compute.
const HELD_UP: u32 = 20;

fn takeover(ctx: &Ctx) -> Result<Outcome> {
    let cpus = ctx.all().iter().count();
    let mut forking = Workers::start("forking", vec![Spec::new(Kind::Fork); 4 * cpus])?;
    let mut computing = Workers::start("computing", vec![Spec::new(Kind::Spin); 4 * cpus])?;
    forking.wait_begun()?;
    computing.wait_begun()?;
    for turn in 1..=TAKEOVERS_MAX {
        let daemon = Daemon::begin(&ctx.program, &["--rt-cpus", &ctx.rt.to_string()])?;
        // before all that computes
        Policy::new(libc::SCHED_FIFO, 1).set(0)?;
        set_policies(&forking)?;
        let looks = waits_for_forks(&daemon)?;
        Policy::new(libc::SCHED_OTHER, 0).set(0)?;
        say(&format!("takeover {turn} waits for forks at {looks} looks"));
        if looks >= HELD_UP {
            forking.ensure_progress(5.0, "under artis")?;
            daemon.finish()?;
            return Ok(Outcome::Passed);
        }
        daemon.finish()?;
    }
    bail!("no takeover was held up: this shows nothing")
}

/// Sets the policies of these tasks until that puts them into the ext class.
fn set_policies(of: &Workers) -> Result<()> {
    let began = Instant::now();
    loop {
        for i in 0..of.len() {
            for policy in [libc::SCHED_BATCH, libc::SCHED_OTHER] {
                Policy::new(policy, 0).set(of.pid(i).cast_signed())?;
            }
        }
        // the first one: then the others were set after it
        if is_of_ext(of.pid(0).cast_signed())? {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "the kernel does not begin to take over");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// At how many looks a thread of the daemon waits until forks have ended, until it is in charge:
/// scx_enable() takes a semaphore that each fork has, and waits for nothing else for long.
fn waits_for_forks(daemon: &Daemon) -> Result<u32> {
    let mut looks = 0;
    until("in charge", PATIENCE, || {
        looks += u32::from(waits_in(daemon.pid(), "scx_enable")?);
        Ok(artis_enabled())
    })
    .with_context(|| daemon.whereabouts())?;
    Ok(looks)
}

fn waits_in(pid: u32, function: &str) -> Result<bool> {
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // it may have ended meanwhile
        let wchan = fs::read_to_string(thread?.path().join("wchan")).unwrap_or_default();
        if wchan.starts_with(function) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_of_ext(pid: i32) -> Result<bool> {
    let figures = fs::read_to_string(format!("/proc/{pid}/sched"))?;
    let line = figures.lines().find(|line| line.starts_with("ext.enabled"));
    Ok(line.context("no ext.enabled in /proc/PID/sched")?.trim_end().ends_with('1'))
}
