// SPDX-License-Identifier: GPL-2.0-only
//! What viewers get from a daemon that runs: recordings, also when records are lost; `explain`,
//! and metrics.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{self, Command};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::{Daemon, Ended, Stats};
use crate::entries::Entries;
use crate::guest::{PATIENCE, pause, until};
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: a recording that hides what it lacks, or lacks what happened; losses that are not
/// counted; figures of `explain` and of metrics that are another task's or none.
pub const RECORDING: Scenario = Scenario {
    name: "recording",
    what: "record, explain and metrics of a running daemon; lost records are counted and told",
    scope: Scope::First,
    boot: &[],
    secs: 26,
    host: Host::Alone,
    complaints: &[],
    run: recording,
};

const METRICS: &str = "127.0.0.1:9464";
/// Attempts under way when the count begins or ends.
const OFF: u64 = 4;
/// Each has a record of more than 1 kB, and the ring has 256.
const FORKS: u64 = 800;

fn recording(ctx: &Ctx) -> Result<Outcome> {
    let mut daemon = ctx.load(&["--ring-kb", "256", "--metrics", METRICS])?;
    let mut stats = daemon.stats()?;
    let mut observer = Entries::attach()?;
    let mut workers = Workers::start("recorded", [Kind::Mixed; 6].map(Spec::new))?;
    workers.wait_begun()?;
    let pid = workers.pid(0);
    workers.freeze(true)?;
    observer.watch(pid)?;

    // nothing is lost while the daemon reads
    let quiet = record(ctx, "quiet", &[])?;
    let file = quiet.1.clone();
    let before = attempts(&file, ctx, pid)?;
    workers.freeze(false)?;
    pause(2.0);
    workers.freeze(true)?;
    pause(1.5);
    let text = said(quiet)?;
    ensure!(text.contains("none lost"), "record says: {text}");
    let (seen, did) = (attempts(&file, ctx, pid)? - before, observer.did(pid)?);
    let happened = did.calls + did.faults;
    say(&format!("{seen} attempts are in the recording, {happened} happened: {text}"));
    ensure!(seen.abs_diff(happened) <= OFF, "{seen} attempts are in it, {happened} happened");

    let live = explained(ctx, &[], pid)?;
    ensure!(live["task"]["pid"] == pid, "explain tells of another task: {live}");
    ensure!(live["task"]["class"] == "NRT", "worker 0 is {}", live["task"]["class"]);

    workers.freeze(false)?;
    metrics_agree(&mut stats)?;

    // each short process has its records, and the ring is not emptied; the others would only hold it up
    workers.freeze(true)?;
    let forks = workers.add(Spec::new(Kind::Fork))?;
    let full = record(ctx, "full", &["--runs", "--events"])?;
    daemon.signal(Signal::SIGSTOP)?;
    let enough = workers.counts()[forks] + FORKS;
    until("as many processes as fill the ring", PATIENCE, || Ok(workers.counts()[forks] > enough))?;
    daemon.signal(Signal::SIGCONT)?;
    pause(1.5);
    let text = said(full)?;
    let lost = stats.counter("records_lost")?;
    say(&format!("{lost} records are lost: {text}"));
    ensure!(lost > 0 && number_before(&text, " lost because the ring")? <= lost, "{text}");

    // no event is in the budget
    told(ctx, &["set", "record-budget", "100"], 0)?;
    let poor = record(ctx, "poor", &["--runs", "--events"])?;
    pause(2.0);
    let text = said(poor)?;
    let over = stats.counter("records_over")?;
    say(&format!("{over} events are over the budget: {text}"));
    ensure!(over > 0 && number_before(&text, " not written because of the")? <= over, "{text}");

    daemon.ensure_loaded("after the recordings")?;
    drop((workers, stats));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Starts `scx_artis record`, and waits until a second is in the file, which is returned, too.
fn record(ctx: &Ctx, name: &str, more: &[&str]) -> Result<(Daemon, String)> {
    let file = format!("/tmp/artis-{name}-{}", process::id());
    let recorder = Daemon::begin(&ctx.program, &[&["record", &file], more].concat())?;
    pause(1.7);
    Ok((recorder, file))
}

/// Ends it as Ctrl-C does; returns what it said.
fn said((recorder, file): (Daemon, String)) -> Result<String> {
    recorder.signal(Signal::SIGINT)?;
    let Ended { code, output } = recorder.ended()?;
    ensure!(code == 0, "record: {code}: {output}");
    ensure!(Path::new(&file).exists(), "no {file}: {output}");
    Ok(output.trim().replace('\n', "; "))
}

/// The attempts of a task in a recording.
fn attempts(file: &str, ctx: &Ctx, pid: u32) -> Result<u64> {
    let told = explained(ctx, &["--replay", file], pid)?;
    told["task"]["attempts"].as_u64().with_context(|| format!("no attempts in {told}"))
}

/// What `scx_artis explain --json` says.
fn explained(ctx: &Ctx, more: &[&str], pid: u32) -> Result<Value> {
    let pid = pid.to_string();
    let mut command = Command::new(&ctx.program);
    let out = command.args(["explain", "--json", &pid]).args(more).output()?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "explain {more:?}: {}: {error}", out.status);
    Ok(serde_json::from_slice(&out.stdout)?)
}

/// Metrics are read between two readings of the statistics, and lie between them.
fn metrics_agree(stats: &mut Stats) -> Result<()> {
    const METRICS: [(&str, &str); 2] =
        [("artis_evictions_total", "evictions"), ("artis_taken_rt_total", "taken_rt")];
    let before = stats.read()?;
    pause(1.5);
    let served = METRICS.map(|(metric, _)| metric_of(metric));
    pause(1.5);
    let after = stats.read()?;
    for ((metric, counter), served) in METRICS.into_iter().zip(served) {
        let range = Stats::counter_in(&before, counter)?..=Stats::counter_in(&after, counter)?;
        let served = served?;
        say(&format!("{metric}: {served}, {counter}: {range:?}"));
        ensure!(range.contains(&served), "{metric} is {served}, not in {range:?}");
    }
    Ok(())
}

fn metric_of(name: &str) -> Result<u64> {
    let mut stream = TcpStream::connect(METRICS).context(METRICS)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: guest\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.with_context(|| format!("no {name} in\n{text}"))?.trim();
    Ok(value.parse()?)
}

/// The number in front of these words.
fn number_before(text: &str, words: &str) -> Result<u64> {
    let (begin, _) = text.split_once(words).with_context(|| format!("no '{words}' in {text}"))?;
    let number = begin.rsplit(' ').next().unwrap_or("");
    number.parse().with_context(|| format!("no number before '{words}' in {text}"))
}
