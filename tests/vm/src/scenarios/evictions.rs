// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler remembers of each task why it had to leave RT CPUs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::{CALM_AT_2_MS, Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::Stats;
use crate::guest::pause;
use crate::load::Workers;
use crate::occupancy::Occupancy;
use crate::worker::{Kind, Spec};

/// Catches: an eviction that is charged to no task, twice, to the wrong one, or to the wrong
/// cause; a lost or stale look-up by thread id; a signal whose handler is entered on an RT CPU (the
/// auditor sees the frame); a page fault inside a harmless call that is handled there (it sees that,
/// too).
pub const TASK_EVICTIONS: Scenario = Scenario {
    name: "task_evictions",
    what: "evictions are charged to the tasks that caused them, by cause",
    scope: Scope::Everywhere,
    boot: &[],
    secs: 10,
    host: Host::Alone,
    complaints: &[],
    run: task_evictions,
};

/// More tasks than NRT CPUs, so that RT CPUs are used.
const MIXED: usize = 6;
/// Mixed workers begin each entry with this call, so it is what they are evicted by.
const CAUSE: &str = "call statx";
/// Only computes.
const COMPUTING: usize = MIXED;
/// Its harmless call needs a page.
const FRESH: usize = MIXED + 1;
/// The last one: its timer interrupts its computing.
const ALARMED: usize = MIXED + 2;
/// Other programs of the guest are evicted, too: a part of all evictions.
const OTHERS_PCT: u64 = 20;

fn task_evictions(ctx: &Ctx) -> Result<Outcome> {
    let daemon = ctx.load(&CALM_AT_2_MS)?;
    let mut stats = daemon.stats()?;
    let kinds = [Kind::Mixed; MIXED].into_iter().chain([Kind::Spin, Kind::Fresh, Kind::Alarm]);
    let mut workers = Workers::start("evicted", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    workers.freeze(true)?;
    let before = (0..workers.len()).map(|i| causes(&mut stats, workers.pid(i)));
    let before: Vec<_> = before.collect::<Result<_>>()?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    observer.watch((0..workers.len()).map(|i| workers.pid(i)))?;
    workers.freeze(false)?;
    pause(5.0);
    workers.freeze(true)?;
    let seen = observer.snapshot()?;
    let mut charged = 0;
    for (i, before) in before.iter().enumerate() {
        let (name, seen) = (workers.spec(i).name(), seen.tasks[i].evictions);
        let causes = causes(&mut stats, workers.pid(i))?;
        say(&format!("{name} {i}: {causes:?}"));
        // one may be under way when the window begins, and one when it ends
        let told = entries(&causes) - entries(before);
        ensure!(
            told.abs_diff(seen) <= 2,
            "{name} {i} was evicted {seen} times, and {told} are told"
        );
        let times: u64 = causes.values().sum();
        charged += times;
        let cause = match i {
            COMPUTING => {
                // it enters the kernel while it begins, and when it is stopped
                ensure!(times <= 20, "worker {i} only computes: {causes:?}");
                continue;
            }
            FRESH => "fault",
            ALARMED => "signal",
            _ => CAUSE,
        };
        let by_cause = causes.get(cause).copied().unwrap_or(0);
        ensure!(by_cause > 5, "{name} {i} was evicted by {cause} only so often: {causes:?}");
        ensure!(by_cause * 2 > times, "{name} {i} enters by {cause}, but: {causes:?}");
    }
    // after them: an eviction happens before it is charged, and a task may stop a little later
    let all = stats.counter("evictions")?;
    say(&format!("{charged} of {all} evictions are charged to the workers"));
    ensure!(charged <= all, "{charged} evictions are charged to tasks, {all} happened");
    ensure!(charged * 100 >= all * (100 - OTHERS_PCT), "{} have no task", all - charged);
    let gone = workers.pid(ALARMED);
    workers.kill_last()?;
    ensure!(stats.task(gone).is_err(), "the dead task {gone} is still known");
    drop(workers);
    daemon.finish()?;
    Ok(Outcome::Passed)
}

/// How often the scheduler says that a task was evicted, by cause.
fn causes(stats: &mut Stats, pid: u32) -> Result<BTreeMap<String, u64>> {
    let mut task = stats.task(pid)?;
    serde_json::from_value(task["evictions"].take()).with_context(|| format!("of {task}"))
}

/// The sum of those that the observer knows: it has no signals.
fn entries(causes: &BTreeMap<String, u64>) -> u64 {
    causes.iter().filter(|(cause, _)| *cause != "signal").map(|(_, times)| times).sum()
}
