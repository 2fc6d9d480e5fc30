// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis ctl` on a scheduler that is in charge of a loaded machine.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::control;
use crate::cpus::Cpus;
use crate::daemon::{Daemon, Stats};
use crate::load::Workers;
use crate::observe::Observer;
use crate::policy::start_ticks;
use crate::programs::make_nrt;
use crate::residue::Inventory;
use crate::worker::{Kind, Spec};

/// Catches: a change that is said to be made but is not, or made in part; bounds that are not
/// those of the option; a task that is left in a queue of a CPU that changed its kind, or
/// stays on a new RT CPU in the kernel; a hook that goes by the old sets; a socket that stays.
pub const CTL: Scenario = Scenario {
    name: "ctl",
    what: "live changes under load: seen in the statistics, bounds kept, six partitions lose no task",
    scope: Scope::First,
    boot: &[],
    secs: 41,
    host: Host::Alone,
    complaints: &[],
    run: ctl,
};

/// RT CPUs, one after another, the first once more at the end: growing, shrinking, exchanged, and a CPU
/// that is in all of them or in none but one.
const SETS: [&str; 5] = ["1-3", "3", "1-2", "2", "2-3"];
const PARTITIONS: usize = 6;
/// Each partition is watched for so long, s.
const WINDOW: f64 = 0.5;

fn ctl(ctx: &Ctx) -> Result<Outcome> {
    let before = Inventory::now();
    refused(ctx, &["get"], 3, "")?;
    let mut daemon = ctx.load(&[])?;
    use Kind::{Call, Enter, Fork, Mixed, Sleep, Spin, Touch};
    let kinds = [Spin, Spin, Spin, Spin, Mixed, Mixed, Mixed, Enter, Call, Touch, Fork, Sleep];
    let mut workers = Workers::start("ctl", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    let mut stats = daemon.stats()?;
    // commands take four times as long beside them
    workers.freeze(true)?;
    values(ctx, &mut stats)?;
    class_of_the_named(workers.pid(0))?;
    workers.freeze(false)?;
    workers.ensure_progress(2.0, "after values were changed")?;
    daemon.ensure_loaded("after values were changed")?;

    let made = partitions(ctx, &mut stats, &mut workers)?;
    daemon.ensure_loaded("after the partitions")?;
    workers.ensure_progress(2.0, "after the partitions")?;
    say(&format!("{made} partitions"));
    drop((workers, stats));
    daemon.finish()?;
    before.ensure_same()?;
    Ok(Outcome::Passed)
}

/// What a command of `scx_artis ctl` says, if its exit code is this one.
pub(super) fn told(ctx: &Ctx, args: &[&str], code: i32) -> Result<String> {
    let ended = Daemon::run(&ctx.program, &[&["ctl"], args].concat())?;
    let text = ended.output.trim_end().to_string();
    ensure!(ended.code == code, "ctl {args:?}: exit code {}, expected {code}: {text}", ended.code);
    Ok(text)
}

pub(super) fn refused(ctx: &Ctx, args: &[&str], code: i32, word: &str) -> Result<()> {
    let text = told(ctx, args, code)?;
    ensure!(text.contains(word), "ctl {args:?} does not mention '{word}': {text}");
    ensure!(!text.contains("panicked"), "ctl {args:?}: {text}");
    say(&format!("ctl {args:?}: {code}, {}", text.lines().next().unwrap_or("")));
    Ok(())
}

/// Number of changes so far, and the RT CPUs.
fn state(stats: &mut Stats) -> Result<(u64, Cpus)> {
    let all = stats.read()?;
    let rt = all.get("rt_cpu_list").and_then(Value::as_str).context("no rt_cpu_list")?;
    Ok((Stats::counter_in(&all, "policy_seq")?, rt.parse()?))
}

/// A class is not set for another task than the one that was looked at, which has its thread id by now.
fn class_of_the_named(tid: u32) -> Result<()> {
    let began = start_ticks(tid.cast_signed())?;
    for (start, expected) in [(began - 1, -libc::ESRCH), (began, 0)] {
        let code = make_nrt(tid, start)?;
        ensure!(code == expected, "task {tid}, begun at {began}, named as of {start}: {code}");
    }
    Ok(())
}

/// Values are changed within their bounds, and only there.
fn values(ctx: &Ctx, stats: &mut Stats) -> Result<()> {
    const NAME: &str = "predict-c-us";
    let (seq, rt) = state(stats)?;
    let old: u64 = told(ctx, &["get", NAME], 0)?.trim().parse().context("the value alone")?;
    let new = (old + 500).to_string();
    say(&told(ctx, &["set", NAME, &new], 0)?);
    ensure!(told(ctx, &["get", NAME], 0)?.trim() == new, "{NAME} is not {new} after it was set");
    let (changed, _) = state(stats)?;
    ensure!(changed == seq + 1, "policy_seq was {seq} and is {changed} after one change");
    let all = ctx.all().to_string();
    let cases: [(&[&str], &str); 7] = [
        (&["set", NAME, "99999999999"], NAME),
        (&["set", NAME, "-1"], NAME),
        (&["set", NAME, "banana"], "banana"),
        (&["set", "no-such-name", "1"], "no-such-name"),
        (&["get", "no-such-name"], "no-such-name"),
        (&["rt-cpus", &all], "no CPU is left"),
        (&["rt-cpus", "2-63"], "63"),
    ];
    for (args, word) in cases {
        refused(ctx, args, 2, word)?;
    }
    ensure!(state(stats)? == (changed, rt), "something refused has changed something");
    say(&told(ctx, &["set", NAME, &old.to_string()], 0)?);
    Ok(())
}

/// Other RT CPUs, again and again.
fn partitions(ctx: &Ctx, stats: &mut Stats, workers: &mut Workers) -> Result<usize> {
    let mut observer = Observer::attach(ctx.rt, false)?;
    let (seq, _) = state(stats)?;
    for turn in 0..PARTITIONS {
        let list = SETS[turn % SETS.len()];
        let rt: Cpus = list.parse()?;
        if turn == 0 {
            told(ctx, &["rt-cpus", list], 0)?;
        } else {
            control::set_rt_cpus(rt)?;
        }
        observer.set_rt(rt)?;
        let seen = observer.watch(WINDOW)?;
        let (now, shown) = state(stats)?;
        ensure!(shown == rt, "RT CPUs are {shown} in the statistics, {rt} were asked for");
        ensure!(now == seq + turn as u64 + 1, "{turn}: policy_seq was {seq} and is {now}");
        ensure!(
            seen.rt.endangering + seen.rt.faults == 0,
            "partition {turn}: {} bodies and {} faults on RT CPUs {rt}\n{}",
            seen.rt.endangering,
            seen.rt.faults,
            seen.culprits()
        );
        ensure!(seen.nrt.endangering > 0, "partition {turn}: the observer saw nothing");
        if turn % SETS.len() == SETS.len() - 1 {
            workers.ensure_progress(2.0, &format!("after partition {turn}"))?;
        }
    }
    Ok(PARTITIONS)
}
