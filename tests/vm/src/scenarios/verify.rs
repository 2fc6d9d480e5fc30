// SPDX-License-Identifier: GPL-2.0-only
//! Sizes of the programs, for `scripts/bench verifier`.

use anyhow::{Result, ensure};

use super::{Ctx, Outcome, Scenario, Scope};
use crate::verifier::{ids, programs_besides};

/// Catches: a kernel on which a program does not load; and, by its figures,
/// programs that grow.
pub const VERIFIER: Scenario = Scenario {
    name: "verifier",
    what: "all programs load; prints their sizes as JSON",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 4,
    timed: false,
    complaints: &[],
    run: verifier,
};

fn verifier(ctx: &Ctx) -> Result<Outcome> {
    let known = ids();
    let daemon = ctx.load(&[])?;
    let programs = programs_besides(&known)?;
    daemon.finish()?;
    ensure!(programs.len() > 5, "only {} programs: {programs:?}", programs.len());
    println!("{}", serde_json::to_string(&programs)?);
    Ok(Outcome::Passed)
}
