// SPDX-License-Identifier: GPL-2.0-only
//! What users other than root may do.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::forge::UID;

/// Catches: a viewer of another group that is served, one of the right group that is not; a
/// change by an ordinary user.
pub const ACCESS: Scenario = Scenario {
    name: "access",
    what: "members of --feed-group may watch and change nothing, others may not watch",
    scope: Scope::First,
    boot: &[],
    secs: 6,
    host: Host::Alone,
    complaints: &[],
    run: access,
};

/// The group that may watch, and another one.
const GROUP: u32 = 4242;
const OTHER: u32 = 4243;
/// Exit code of a client that no daemon serves.
const UNFIT: i32 = 3;

fn access(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&["--feed-group", &GROUP.to_string()])?;
    let own = std::process::id().to_string();
    let watch = ["top", "--json", "--count", "1"];
    let text = told(ctx, GROUP, &watch, 0)?;
    ensure!(text.contains("\"tasks\""), "a member of the group sees\n{text}");
    let text = told(ctx, OTHER, &watch, UNFIT)?;
    ensure!(text.contains("--feed-group"), "the refusal does not name --feed-group\n{text}");
    for change in [
        &["ctl", "set", "predict-c-us", "5"][..],
        &["ctl", "rt-cpus", "3"],
        &["ctl", "class", &own, "--class", "rt1", "--priority", "10"],
        &["run", "--class", "rt1", "--priority", "10", "true"],
    ] {
        let before = daemon.stats()?.counter("policy_seq")?;
        let text = told(ctx, GROUP, change, UNFIT)?;
        let after = daemon.stats()?.counter("policy_seq")?;
        ensure!(before == after, "{change:?} by an ordinary user has changed something\n{text}");
    }
    daemon.ensure_loaded("after what users may not do")?;
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// What the program says to an ordinary user of this group, if its exit code is this one.
fn told(ctx: &Ctx, gid: u32, args: &[&str], code: i32) -> Result<String> {
    let mut command = Command::new(&ctx.program);
    // without the groups of root
    let out = command.args(args).uid(UID).gid(gid).stdin(Stdio::null()).output()?;
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text += &String::from_utf8_lossy(&out.stderr);
    say(&format!("group {gid}, {args:?}: {}, {}", out.status, text.lines().next().unwrap_or("")));
    ensure!(out.status.code() == Some(code), "{args:?}: {}, expected {code}\n{text}", out.status);
    ensure!(!text.contains("panicked"), "{args:?}: {text}");
    Ok(text)
}
