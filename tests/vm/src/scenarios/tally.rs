// SPDX-License-Identifier: GPL-2.0-only
//! What scx_artis tells of each task is what happened.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{CALM_AT_2_MS, Ctx, Host, Outcome, Scenario, Scope, say};
use crate::cpus::Cpus;
use crate::daemon::Stats;
use crate::entries::{Did, Entries};
use crate::figure::figure;
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
    secs: 15,
    host: Host::Alone,
    complaints: &[],
    run: tally,
};

/// Attempts may differ by so much: 0.1 %.
const ATTEMPTS_OFF_PER_MILLE: u64 = 1;
/// Entries or wake-ups that are under way when the count begins or ends.
const OFF_TASK: u64 = 4;
/// The same of all tasks together.
const OFF_ALL: u64 = 40;
/// A task of higher priority keeps the sleeper waiting for so long, once. The longest wait is this
/// one then, and not one of the emulator's, which may fall between the two readings of the clock.
const BLOCKED_SECS: f64 = 0.5;
/// The longest wait may differ by so much. A wait that is not timed, or is lost with its record,
/// leaves a shorter one: 2,455 us are told instead of 507,151 then.
const LONGEST_OFF_PCT: u64 = 20;
/// Half the sleeper's time asleep, us: a build that times from the sleep's begin instead of the
/// wake-up tells 1,844 us as the median; 11 to 33 us are told (6.18 to 7.3).
const MEDIAN_MAX_US: f64 = 1000.0;
const OUT: &str = "/tmp/artis-tally.json";

/// Of all evictions, those that are told of tasks: what is told of one that ends is gone with it. 0 with
/// evictions that are not counted for their tasks.
const TOLD_PCT: u64 = 80;

/// A viewer that writes a line of JSON each second; killed when dropped.
pub(super) struct Viewer(Child);

impl Viewer {
    pub fn start(ctx: &Ctx) -> Result<Self> {
        let child = Command::new(&ctx.program)
            .args(["top", "--json", "--interval", "1"])
            .stdin(Stdio::null())
            .stdout(File::create(OUT)?)
            .spawn()
            .context("start the viewer")?;
        Ok(Self(child))
    }

    /// The last whole line.
    pub fn last(&mut self) -> Result<Value> {
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

pub(super) fn tasks(line: &Value) -> Result<BTreeMap<u64, &Value>> {
    let tasks = line["tasks"].as_array().context("no tasks in the viewer's line")?;
    Ok(tasks.iter().filter_map(|task| Some((task["pid"].as_u64()?, task))).collect())
}

fn tally(ctx: &Ctx) -> Result<Outcome> {
    let daemon = ctx.load(&CALM_AT_2_MS)?;
    let kinds =
        [Kind::Mixed; 6].into_iter().chain([Kind::Enter; 2]).chain([Kind::Call, Kind::Epoll]);
    let rt_cpu = Cpus::one(ctx.rt.first()?);
    // an NRT sleeper makes no attempt: its only call is of a class of its own
    let sleepers = [Spec::new(Kind::Sleep), Spec::new(Kind::Sleep).fifo(80).on(rt_cpu)];
    let stays = Spec::new(Kind::Call).on(rt_cpu); // so it makes no attempt
    let specs = kinds.map(Spec::new).chain(sleepers).chain([stays]);
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
    let mut stats = daemon.stats()?;
    let mut all = || -> Result<[u64; 4]> {
        let now = stats.read()?;
        let names = ["attempts_call", "attempts_fault", "evictions", "exempt_pinned"];
        let [call, fault, evictions, pinned] = names.map(|name| Stats::counter_in(&now, name));
        Ok([call?, fault?, evictions?, pinned?])
    };
    let all_before = all()?;
    workers.freeze(false)?;
    pause(5.0);
    block(rt_cpu)?;
    workers.freeze(true)?;
    pause(3.0);
    let after = viewer.last()?;
    // later: an eviction happens before it is told of its task
    let all_after = all()?;
    let (before, after) = (tasks(&before)?, tasks(&after)?);
    let (mut sums, mut kinds) = ([0; 2], [0; 2]);
    for i in 0..workers.len() {
        let pid = u64::from(workers.pid(i));
        let task = after.get(&pid).with_context(|| format!("worker {i} is not told of"))?;
        let grown = |name: &str| grown(&before, pid, task, name);
        let did = observer.did(workers.pid(i))?;
        let told = grown("attempts")?;
        say(&format!("{} {i}: {told} attempts told, {did:?}", workers.spec(i).name()));
        if workers.spec(i).fifo.is_some() {
            ensure!(task["class"] == "RT0", "a FIFO task bound to RT CPUs is {}", task["class"]);
            waits_agree(&did, grown("waits")?, task)?;
            continue;
        }
        let happened = did.calls + did.faults;
        if workers.spec(i).cpus == Some(rt_cpu) {
            let counted = all_after[3] - all_before[3];
            ensure!(told == 0, "{told} attempts are told of a task bound to an RT CPU");
            ensure!(
                happened > 100 && counted + OFF_TASK >= happened,
                "it entered the kernel {happened} times, of which {counted} are counted as exempt"
            );
            continue;
        }
        let off = told.abs_diff(happened);
        ensure!(
            happened > 100 || workers.spec(i).kind == Kind::Sleep,
            "control: worker {i} entered the kernel {happened} times only"
        );
        ensure!(
            off <= OFF_TASK.max(happened * ATTEMPTS_OFF_PER_MILLE / 1000),
            "worker {i} made {happened} attempts, {told} are told"
        );
        sums[0] += told;
        sums[1] += happened;
        kinds = [kinds[0] + did.calls, kinds[1] + did.faults];
    }
    say(&format!("all: {} attempts told, {} happened", sums[0], sums[1]));
    figure("attempts", sums[1], "attempts");
    figure("attempts_off", sums[0].abs_diff(sums[1]), "attempts");
    ensure!(
        sums[0].abs_diff(sums[1]) * 1000 <= sums[1] * ATTEMPTS_OFF_PER_MILLE,
        "{} attempts are told, {} happened",
        sums[0],
        sums[1]
    );
    // others make attempts, too
    for (what, i) in [("calls", 0), ("faults", 1)] {
        let told = all_after[i] - all_before[i];
        say(&format!("{told} attempts by {what} on all CPUs, {} by these tasks", kinds[i]));
        ensure!(told + OFF_ALL >= kinds[i], "{told} attempts by {what} are counted on all CPUs");
    }
    let evictions = all_after[2] - all_before[2];
    let evicted: u64 = after
        .iter()
        .map(|(pid, task)| grown(&before, *pid, task, "evictions"))
        .sum::<Result<_>>()?;
    say(&format!("{evicted} of {evictions} evictions are told of tasks"));
    figure("evictions", evictions, "evictions");
    figure("evictions_untold", evictions.saturating_sub(evicted), "evictions");
    ensure!(evictions > 5, "control: {evictions} evictions only");
    ensure!(evicted <= evictions, "{evicted} evictions are told of tasks, {evictions} happened");
    ensure!(evicted * 100 >= evictions * TOLD_PCT, "{} have no task", evictions - evicted);
    drop((viewer, workers, stats));
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// By how much the figure `name` of `task` has grown since `before`.
fn grown(before: &BTreeMap<u64, &Value>, pid: u64, task: &Value, name: &str) -> Result<u64> {
    let of = |task: &Value| task[name].as_u64().with_context(|| format!("no {name}"));
    Ok(of(task)? - before.get(&pid).map_or(Ok(0), |task| of(task))?)
}

/// Keeps every task of a lower real-time priority off this CPU for a while.
fn block(cpu: Cpus) -> Result<()> {
    let mut blocker = Workers::start("blocks", [Spec::new(Kind::Spin).fifo(90).on(cpu)])?;
    blocker.wait_begun()?;
    pause(BLOCKED_SECS);
    Ok(())
}

/// Does what is told of a real-time task's wake-ups agree with what it did?
fn waits_agree(did: &Did, told: u64, task: &Value) -> Result<()> {
    let us = |name: &str| task[name].as_f64().with_context(|| format!("no {name}"));
    let (median_us, max_us) = (us("wait_p50_us")?, us("wait_max_us")?);
    let mean_us = did.wait_ns as f64 / 1e3 / did.waits as f64;
    let seen_max_us = did.wait_max_ns as f64 / 1e3;
    say(&format!(
        "wake-ups: {told} told, median {median_us} us, longest {max_us} us; seen {}, mean \
         {mean_us:.1} us, longest {seen_max_us} us",
        did.waits
    ));
    figure("wakeups", did.waits, "wake-ups");
    figure("wakeups_off", told.abs_diff(did.waits), "wake-ups");
    ensure!(did.waits > 200, "control: {} wake-ups only", did.waits);
    ensure!(
        seen_max_us > BLOCKED_SECS * 1e6 / 2.0,
        "control: nothing kept the task waiting: at most {seen_max_us} us"
    );
    ensure!(told.abs_diff(did.waits) <= OFF_TASK, "{} wake-ups, {told} are told", did.waits);
    ensure!(
        (max_us - seen_max_us).abs() * 100.0 <= seen_max_us * LONGEST_OFF_PCT as f64,
        "the longest wait was {seen_max_us} us, {max_us} are told"
    );
    ensure!(median_us < MEDIAN_MAX_US, "the median wait is said to be {median_us} us");
    Ok(())
}
