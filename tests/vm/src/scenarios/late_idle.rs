// SPDX-License-Identifier: GPL-2.0-only
//! A task is queued for a CPU that has looked for one in vain and is about to go idle.

use std::thread;

use anyhow::{Result, ensure};

use super::{CALM_AT_2_MS, Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::cpus::Cpus;
use crate::guest::{PATIENCE, pause, until};
use crate::idling::Idling;
use crate::load::Workers;
use crate::policy::cpu_of;
use crate::programs::look_again;
use crate::worker::{Kind, Spec, set_nice};

/// Catches: an evicted task that waits while a CPU idles which could run it, since that had looked
/// before and was not idle yet when the task was queued. In every second turn it was idle, is kicked, and
/// stays so.
pub const LATE_IDLE: Scenario = Scenario {
    name: "late_idle",
    what: "a CPU that goes idle runs the task that has been queued since it looked",
    scope: Scope::Both, // from 6.16 on
    boot: &[],
    secs: 20,
    host: Host::Alone,
    complaints: &[],
    run: late_idle,
};

/// The CPU that goes idle, and the RT CPU that the task leaves.
const GOES_IDLE: u32 = 2;
const RT: u32 = 3;
/// Without the rule the CPU idles in one of five: interrupts that came meanwhile wake it as well.
const TURNS: u32 = 30;

fn late_idle(ctx: &Ctx) -> Result<Outcome> {
    let ctx = &ctx.with_rt(Cpus::one(RT))?;
    let busy = ctx.nrt.without(Cpus::one(GOES_IDLE));
    busy.bind(0)?;
    let mut idling = Idling::attach(GOES_IDLE)?;
    let mut daemon = ctx.load(&CALM_AT_2_MS)?;
    // in the kernel: such a task makes no way for a woken or evicted one
    let hogs = busy.iter().map(|cpu| Spec::new(Kind::Call).on(Cpus::one(cpu)));
    let mut hogs = Workers::start("hogs", hogs)?;
    hogs.wait_begun()?;
    let mut idled = Vec::new();
    for turn in 0..TURNS {
        idled.extend(idles(ctx, busy, &hogs, &mut idling, turn % 2 == 1)?);
    }
    daemon.ensure_loaded("in the end")?;
    say(&format!("times that CPU {GOES_IDLE} idled while an evicted task waited: {idled:?}"));
    enough(idled.len() as u64, u64::from(TURNS) / 2, "evictions while it went idle")?;
    ensure!(idled.iter().all(|times| *times == 0), "CPU {GOES_IDLE} idled while a task waited");
    drop(hogs);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// How often the CPU idles while a task waits that has left the RT CPU meanwhile; `None`: that left before,
/// or another CPU has taken it at once.
fn idles(
    ctx: &Ctx,
    busy: Cpus,
    hogs: &Workers,
    idling: &mut Idling,
    stays: bool,
) -> Result<Option<u32>> {
    let mut late = Workers::start("late", [Spec::new(Kind::Burst).on(busy)])?;
    late.wait_begun()?;
    let pid = late.pid(0);
    // the NRT CPU where it ran last is one of the busy ones
    Cpus(busy.0 | Cpus::one(RT).0).bind(pid.cast_signed())?;
    until("the task computes on the RT CPU", PATIENCE, || Ok(cpu_of(pid.cast_signed())? == RT))?;
    ctx.all().bind(pid.cast_signed())?;
    let give_way =
        |all: &Workers, nice| (0..all.len()).try_for_each(|i| set_nice(all.pid(i), nice));
    give_way(hogs, -20)?;
    give_way(&late, 19)?;
    idling.arm(pid, stays)?;
    // whatever runs there for a moment: it goes idle then
    let visit = move || if stays { look_again() } else { Cpus::one(GOES_IDLE).bind(0) };
    let visit = thread::spawn(visit);
    until("a CPU that goes idle", PATIENCE, || idling.has_held())?;
    late.board().start();
    visit.join().expect("no panic")?;
    pause(0.2);
    give_way(hogs, 0)?;
    idling.idled()
}
