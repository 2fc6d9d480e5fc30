// SPDX-License-Identifier: GPL-2.0-only
//! The auditor itself.

use anyhow::{Context, Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::auditor::{self, Rule};
use crate::cpus::Cpus;
use crate::guest::{PATIENCE, pause, scx_state, until};
use crate::load::Workers;
use crate::shared;
use crate::skeleton;
use crate::worker::{Kind, Spec};

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/lazy_skel.rs"));
}
use skel::LazySkelBuilder;

/// Catches: rules of waiting that nothing breaks.
pub const AUDITOR: Scenario = Scenario {
    name: "auditor",
    what: "the auditor finds the idle CPUs and the forgotten task of a lazy scheduler",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 12,
    host: Host::Shared,
    complaints: &[],
    run: finds,
};

fn finds(ctx: &Ctx) -> Result<Outcome> {
    let mut lazy = skeleton::load(LazySkelBuilder::default(), |_| Ok(()))?;
    let link = lazy.maps.lazy.attach_struct_ops().context("attach the scheduler")?;
    until("it is in charge", PATIENCE, || Ok(scx_state()? == "enabled"))?;
    // half of them may use RT CPUs beside CPU 0, but no idle NRT CPU
    let some = Spec::new(Kind::Spin).on(Cpus(ctx.rt.0 | 1));
    let all = Spec::new(Kind::Spin);
    let mut workers = Workers::start("lazy", [all.clone(), all, some.clone(), some])?;
    workers.wait_begun()?;
    pause(3.0);
    let bss = lazy.maps.bss_data.as_deref_mut().context("it has no data")?;
    shared::set(&mut bss.forgotten, workers.pid(0));
    pause(5.0);
    // first of all: a task that is forgotten cannot end, and what detaches programs waits for it
    drop(link);
    until("it is gone", PATIENCE, || Ok(scx_state()? == "disabled"))?;
    drop(workers);
    let report = auditor::end()?.context("no auditor")?;
    for line in report.lines() {
        say(&line);
    }
    for rule in [Rule::Idle, Rule::IdleRt, Rule::Standstill] {
        let found = report.findings.iter().any(|f| f.rule == rule && f.comm.starts_with("art-"));
        ensure!(found, "the auditor has not found: {}", rule.name());
    }
    Ok(Outcome::Passed)
}
