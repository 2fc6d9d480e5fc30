// SPDX-License-Identifier: GPL-2.0-only
//! Task affinity: consumers run where their producers ran (docs/follow.md).

use std::fs;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::figure::compared;
use crate::guest::{PATIENCE, pause, until};
use crate::load::Workers;
use crate::mixer::Report;
use crate::observe::Observer;
use crate::worker::{Kind, Spec};

/// Catches: followers that are declared but do not follow, or follow onto an RT CPU in the
/// middle of a kernel section; a producer's end that takes its consumer along, or that is not
/// noticed; thread ids that are taken though nobody has them.
pub const FOLLOW: Scenario = Scenario {
    name: "follow",
    what: "followers move a tenth as often, within the rules; producers end",
    scope: Scope::First,
    boot: &["--icount"],
    secs: 58,
    host: Host::Shared,
    complaints: &[],
    run: follow,
};

/// Turns of the mixer without and with followers.
const TURNS: usize = 2;
/// Tasks that keep the NRT CPUs busy.
const BUSY: usize = 6;
/// Followers move at most so often, of what they do without following, percent.
const LEFT_PCT: u64 = 10;

fn follow(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&[])?;
    refusals(ctx)?;
    migrations(ctx)?;
    producer_ends(ctx)?;
    daemon.ensure_loaded("after followers")?;
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// What `scx_artis ctl follow` says, if its exit code is this one.
fn ctl(ctx: &Ctx, args: &[&str], code: i32) -> Result<String> {
    told(ctx, &[&["follow"], args].concat(), code)
}

/// Consumer and producer of each pair.
pub fn pairs(ctx: &Ctx) -> Result<Vec<(u64, u64)>> {
    let all: Vec<Value> = serde_json::from_str(&ctl(ctx, &["--list", "--json"], 0)?)?;
    let pair = |v: &Value| Some((v["consumer"].as_u64()?, v["producer"].as_u64()?));
    all.iter().map(|v| pair(v).with_context(|| format!("no pair: {v}"))).collect()
}

fn refusals(ctx: &Ctx) -> Result<()> {
    let me = std::process::id().to_string();
    // the highest thread id that there may be, and a kernel thread
    for (args, word) in [
        (&[me.as_str(), "4194304"][..], "4194304"),
        (&["4194304", &me], "4194304"),
        (&["2", &me], "kernel thread"),
        (&[&me, &me], "itself"),
        (&[&me, "1", "1", "1", "1", "1"], "too many"),
    ] {
        let text = ctl(ctx, args, 2)?;
        ensure!(text.contains(word), "ctl follow {args:?} does not mention '{word}': {text}");
    }
    ensure!(pairs(ctx)?.is_empty(), "something refused has changed something");
    Ok(())
}

/// The mixer without and with followers, in turn.
fn migrations(ctx: &Ctx) -> Result<()> {
    // NRT CPUs are never idle: without following it is chance who runs where
    let mut workers = Workers::start("busy", [Kind::Mixed; BUSY].map(Spec::new))?;
    workers.wait_begun()?;
    let mut observer = Observer::attach(ctx.rt, false)?;
    let nrt = ctx.nrt.to_string();
    let program = ctx.program.to_string_lossy().into_owned();
    let (mut without, mut with) = ((0, 0), (0, 0));
    for _ in 0..TURNS {
        add(&mut without, mixer(&nrt, &[])?.wait()?);
        let mixing = mixer(&nrt, &["--follow", &program])?;
        // all that it declares before it begins
        until("seven pairs are told", PATIENCE, || Ok(pairs(ctx)?.len() == 7))?;
        let seen = observer.watch(2.0)?;
        add(&mut with, mixing.wait()?);
        let bodies = seen.rt.endangering + seen.rt.faults;
        ensure!(bodies == 0, "{bodies} bodies on RT CPUs\n{}", seen.culprits());
    }
    // of as many samples each
    say(&format!(
        "without: {} of {} wake-ups on another CPU than before; with followers: {} of {}: {:.1} %",
        without.1,
        without.0,
        with.1,
        with.0,
        100.0 * with.1 as f64 / without.1.max(1) as f64
    ));
    let order = "alternating, 600 samples each";
    compared("moves", with.1, "moves", order);
    compared("moves_without", without.1, "moves", order);
    let pct = 100.0 * with.1 as f64 / without.1.max(1) as f64;
    compared("moves_pct", format!("{pct:.1}"), "%", order);
    enough(without.1, 100, "moves without followers")?;
    ensure!(
        with.1 * 100 <= without.1 * LEFT_PCT,
        "followers move more than {LEFT_PCT} % as often as without following"
    );
    workers.ensure_progress(2.0, "beside followers")
}

fn add(sum: &mut (u64, u64), more: (u64, u64)) {
    sum.0 += more.0;
    sum.1 += more.1;
}

/// The mixer under way.
struct Mixing(Child);

/// Starts it, its waves bound to `cpus`: they are not to take their followers along.
fn mixer(cpus: &str, args: &[&str]) -> Result<Mixing> {
    let child = Command::new(std::env::current_exe()?)
        .args(["mixer", "--samples", "600", "--period-us", "8000", "--burst-us", "200"])
        .args(["--bind", cpus])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("start the mixer")?;
    Ok(Mixing(child))
}

impl Mixing {
    /// Wake-ups of its followers, and those on another CPU than before.
    fn wait(self) -> Result<(u64, u64)> {
        let out = self.0.wait_with_output()?;
        ensure!(out.status.success(), "the mixer: {}", out.status);
        Report::followers_in(&String::from_utf8_lossy(&out.stdout))
    }
}

/// A program that ends with its guard.
struct Guard(Child);

impl Guard {
    fn sh(script: &str) -> Result<Self> {
        let child = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).spawn();
        Ok(Self(child.with_context(|| format!("start {script}"))?))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PIPE: &str = "/tmp/follow.pipe";
const COPY: &str = "/tmp/follow.copy";

/// Writes a line into the pipe every 10 ms.
fn producer() -> Result<Guard> {
    Guard::sh(&format!("exec 5<>{PIPE}; while :; do echo line >&5; sleep 0.01; done"))
}

/// Copies the pipe into a file; it stays when nobody writes any more.
fn consumer() -> Result<Guard> {
    let _ = fs::remove_file(PIPE);
    nix::unistd::mkfifo(PIPE, nix::sys::stat::Mode::S_IRWXU).context(PIPE)?;
    Guard::sh(&format!("exec cat <>{PIPE} >{COPY}"))
}

fn copied() -> u64 {
    fs::metadata(COPY).map_or(0, |file| file.len())
}

fn grows(what: &str) -> Result<()> {
    let before = copied();
    until(what, PATIENCE, || Ok(copied() > before + 100))
}

/// Of two producers one is killed: the consumer goes on, and follows the other one.
fn producer_ends(ctx: &Ctx) -> Result<()> {
    let (reader, stays, goes) = (consumer()?, producer()?, producer()?);
    grows("the consumer copies")?;
    ctl(ctx, &[&reader.pid(), &stays.pid(), &goes.pid()], 0)?;
    grows("the consumer copies while it follows")?;
    ensure!(pairs(ctx)?.len() == 2, "two producers were declared");
    let left = vec![(u64::from(reader.0.id()), u64::from(stays.0.id()))];
    drop(goes);
    grows("the consumer copies after the end of a producer")?;
    ensure!(pairs(ctx)? == left, "{:?} instead of {left:?}", pairs(ctx)?);
    drop(stays);
    pause(0.2);
    ensure!(pairs(ctx)?.is_empty(), "nobody is left: {:?}", pairs(ctx)?);
    ctl(ctx, &["--stop", &reader.pid()], 0)?;
    Ok(())
}
