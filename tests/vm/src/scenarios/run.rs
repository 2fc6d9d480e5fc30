// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis run`: a program that begins with a class.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::Daemon;
use crate::guest::{PATIENCE, line, until};
use crate::policy::{EXT, Policy};

/// Catches: a program that begins without its class, or whose child has none; an exit code that is
/// not the program's; a program that begins although nobody could give it a class.
pub const RUN_CLASS: Scenario = Scenario {
    name: "run_class",
    what: "`scx_artis run --class` starts programs of a class, and their children are of it, too",
    scope: Scope::First,
    boot: &[],
    secs: 8,
    host: Host::Alone,
    complaints: &[],
    run: run_class,
};

/// Exit code where no daemon runs, and of what cannot be run.
const NO_DAEMON: i32 = 3;
const NO_PROGRAM: i32 = 2;
/// That of the program itself.
const OWN: i32 = 42;

fn run_class(ctx: &Ctx) -> Result<Outcome> {
    let run = |command: &[&str], code: i32, word: &str| {
        let args = [&["run", "--class", "rt1", "--priority", "37", "--"], command].concat();
        let ended = Daemon::run(&ctx.program, &args)?;
        say(&format!("{command:?}: {} {}", ended.code, ended.output.trim()));
        ensure!(
            ended.code == code && ended.output.contains(word),
            "{command:?}: exit code {}, expected {code} and '{word}': {}",
            ended.code,
            ended.output
        );
        Ok(())
    };
    run(&["touch", MARK], NO_DAEMON, "scx_artis")?;
    ensure!(!std::path::Path::new(MARK).exists(), "it ran without a daemon");

    let mut daemon = ctx.load(&[])?;
    run(&["sh", "-c", &format!("exit {OWN}")], OWN, "")?;
    run(&["/no/such/program"], NO_PROGRAM, "/no/such/program")?;
    let args = ["run", "--class", "rt1", "--priority", "37", "--", "sh", "-c", "sleep 600; true"];
    let shell = Daemon::begin(&ctx.program, &args)?;
    let mut child = String::new();
    until("the shell has a child", PATIENCE, || {
        let pid = shell.pid();
        child = line(&format!("/proc/{pid}/task/{pid}/children"))?;
        Ok(!child.is_empty())
    })?;
    let child = child.parse::<u32>().context("more than one child")?;
    let mut stats = daemon.stats()?;
    for pid in [shell.pid(), child] {
        let task = stats.task(pid)?;
        ensure!(task["rt1"] == 37, "task {pid} is told as {task}");
        let policy = Policy::of(pid.cast_signed())?.context("it has ended")?.policy;
        ensure!([0, EXT].contains(&policy), "task {pid} has policy {policy}");
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.cast_signed()), Signal::SIGKILL)?;
    let ended = shell.ended()?;
    ensure!(ended.code == 0, "the shell ended with {}: {}", ended.code, ended.output);
    daemon.ensure_loaded("at the end")?;
    drop(stats);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// The program would leave it.
const MARK: &str = "/tmp/artis-run-mark";
