// SPDX-License-Identifier: GPL-2.0-only
//! The ground truth, where the kernel has it: the preempt_* tracepoints.

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::guest::pause;
use crate::load::mix;
use crate::observe::{Observer, has_preempt_events};

/// Catches: endangering sections on RT CPUs that no entry shows.
pub const PREEMPT_GROUND_TRUTH: Scenario = Scenario {
    name: "preempt_ground_truth",
    what: "no preempt-off section inside an endangering body on an RT CPU (preempt_* tracepoints)",
    scope: Scope::Floor,
    boot: &[],
    secs: 41,
    host: Host::Alone,
    complaints: &[],
    run: preempt_ground_truth,
};

fn preempt_ground_truth(ctx: &Ctx) -> Result<Outcome> {
    if !has_preempt_events() {
        return Ok(Outcome::Skipped("this kernel has no preemptirq tracepoints".into()));
    }
    let mut observer = Observer::attach_with(ctx.rt, false, true)?;
    let loads = mix()?;
    pause(1.0);
    let control = observer.watch(2.0)?;
    say(&format!("kernel's default: {} sections on RT CPUs", control.rt.sections));
    ensure!(control.rt.sections > 1000, "control: the observer is blind");
    loads.iter().try_for_each(|l| l.freeze(true))?;
    let mut daemon = ctx.load(&[])?;
    loads.iter().try_for_each(|l| l.freeze(false))?;
    pause(1.5);
    let seen = observer.watch(5.0)?;
    say(&format!("artis: {} sections on RT CPUs", seen.rt.sections));
    daemon.ensure_loaded("after the window")?;
    ensure!(seen.rt.sections == 0, "{} sections\n{}", seen.rt.sections, seen.culprits());
    drop(loads);
    daemon.finish()?;
    Ok(Outcome::Passed)
}
