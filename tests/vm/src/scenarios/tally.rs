// SPDX-License-Identifier: GPL-2.0-only
//! What scx_artis tells of each task is what happened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Ctx, Outcome, Scenario, Scope, say};
use crate::entries::{Did, Entries};
use crate::guest::pause;
use crate::load::Workers;
use crate::worker::{Kind, Spec};

/// Catches: an attempt that is counted twice, not at all, or for another task; totals that a
/// record loses; a wake-up of a real-time task that is not timed, or from the wrong moment.
pub const TALLY: Scenario = Scenario {
    name: "tally",
    what: "attempts and wake-up latencies of each task, as `scx_artis top --json` tells them",
    scope: Scope::Everywhere,
    boot: &[],
    run: tally,
};

/// Attempts may differ by so much: 0.1 %.
const ATTEMPTS_OFF_PER_MILLE: u64 = 1;
/// An entry that is under way when the count begins or ends.
const ATTEMPTS_OFF_TASK: u64 = 4;
/// Numbers of wake-ups and the sum of the waits may differ by so much: both sides read a clock at
/// slightly different moments.
const WAITS_OFF_PCT: u64 = 20;
const OUT: &str = "/tmp/artis-tally.json";

/// A viewer that writes a line of JSON each second; killed when dropped.
struct Viewer(Child);

impl Viewer {
    fn start(ctx: &Ctx) -> Result<Self> {
        let child = Command::new(&ctx.program)
            .args(["top", "--json", "--interval", "1"])
            .stdin(Stdio::null())
            .stdout(File::create(OUT)?)
            .spawn()
            .context("start the viewer")?;
        Ok(Self(child))
    }

    /// The last whole line.
    fn last(&mut self) -> Result<Value> {
        ensure!(self.0.try_wait()?.is_none(), "the viewer has ended");
        let lines: Vec<_> = BufReader::new(File::open(OUT)?).lines().collect::<Result<_, _>>()?;
        let whole = lines.iter().rev().find_map(|line| serde_json::from_str(line).ok());
        whole.context("the viewer has written nothing yet")
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tasks(line: &Value) -> Result<BTreeMap<u64, &Value>> {
    let tasks = line["tasks"].as_array().context("no tasks in the viewer's line")?;
    Ok(tasks.iter().filter_map(|task| Some((task["pid"].as_u64()?, task))).collect())
}

fn tally(ctx: &Ctx) -> Result<Outcome> {
    let daemon = ctx.load(&[])?;
    let kinds = [Kind::Mixed; 6].into_iter().chain([Kind::Enter; 2]).chain([Kind::Call]);
    let specs = kinds.map(Spec::new).chain([Spec::new(Kind::Sleep).fifo(80).on(ctx.rt)]);
    let mut workers = Workers::start("tallied", specs)?;
    workers.wait_begun()?;
    workers.freeze(true)?;
    let mut observer = Entries::attach()?;
    let mut viewer = Viewer::start(ctx)?;
    pause(2.5);
    let before = viewer.last()?;
    for i in 0..workers.len() {
        observer.watch(workers.pid(i))?;
    }
    workers.freeze(false)?;
    pause(5.0);
    workers.freeze(true)?;
    pause(3.0);
    let after = viewer.last()?;
    let (before, after) = (tasks(&before)?, tasks(&after)?);
    let mut sums = [0; 2];
    for i in 0..workers.len() {
        let pid = u64::from(workers.pid(i));
        let task = after.get(&pid).with_context(|| format!("worker {i} is not told of"))?;
        let grown = |name: &str| -> Result<u64> {
            let of = |task: &Value| task[name].as_u64().with_context(|| format!("no {name}"));
            Ok(of(task)? - before.get(&pid).map_or(Ok(0), |task| of(task))?)
        };
        let did = observer.did(workers.pid(i))?;
        let told = grown("attempts")?;
        say(&format!("{} {i}: {told} attempts told, {did:?}", workers.spec(i).name()));
        if workers.spec(i).fifo.is_some() {
            ensure!(task["class"] == "RT0", "a FIFO task bound to RT CPUs is {}", task["class"]);
            waits_agree(&did, grown("waits")?, task)?;
            continue;
        }
        let happened = did.calls + did.faults;
        let off = told.abs_diff(happened);
        ensure!(happened > 100, "control: worker {i} entered the kernel {happened} times only");
        ensure!(
            off <= ATTEMPTS_OFF_TASK.max(happened * ATTEMPTS_OFF_PER_MILLE / 1000),
            "worker {i} made {happened} attempts, {told} are told"
        );
        sums[0] += told;
        sums[1] += happened;
    }
    say(&format!("all: {} attempts told, {} happened", sums[0], sums[1]));
    ensure!(
        sums[0].abs_diff(sums[1]) * 1000 <= sums[1] * ATTEMPTS_OFF_PER_MILLE,
        "{} attempts are told, {} happened",
        sums[0],
        sums[1]
    );
    drop((viewer, workers));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// Does what is told of a real-time task's wake-ups agree with what it did?
fn waits_agree(did: &Did, told: u64, task: &Value) -> Result<()> {
    let max_ns = task["wait_max_us"].as_f64().context("no wait_max_us")? * 1e3;
    say(&format!("wake-ups: {told} told, longest {max_ns:.0} ns"));
    ensure!(did.waits > 200, "control: {} wake-ups only", did.waits);
    ensure!(
        told.abs_diff(did.waits) * 100 <= did.waits * 2,
        "{} wake-ups, {told} are told",
        did.waits
    );
    // the longest may be one of those while the observer attached or the tasks were stopped
    ensure!(
        max_ns * 100.0 >= did.wait_max_ns as f64 * (100 - WAITS_OFF_PCT) as f64,
        "the longest wait was {} ns, {max_ns:.0} are told",
        did.wait_max_ns
    );
    Ok(())
}
