// SPDX-License-Identifier: GPL-2.0-only
//! An ordinary user, member of the feed's group, gives the daemon as much to do as it can.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::adopt::stay_out;
use super::control::told;
use super::{Ctx, Host, Outcome, Scenario, Scope, enough, say};
use crate::besiege::{GROUP, METRICS};
use crate::cpus::Cpus;
use crate::figure::figure;
use crate::guest::{PATIENCE, pause, run_time_ns, scx_state, status_number, until};
use crate::load::Workers;
use crate::occupancy::Occupancy;
use crate::worker::{Kind, Spec};

/// Catches: a daemon that a storm of names, programs and connections keeps from answering; one that
/// takes a CPU for that, or memory without a bound; a real-time task that feels it.
pub const SIEGE: Scenario = Scenario {
    name: "siege",
    what: "a user's storm of renames, programs, viewers, connections to the metrics: ctl, RT0, memory, the end",
    scope: Scope::First,
    boot: &["--icount=1"],
    secs: 75,
    host: Host::Shared,
    complaints: &[],
    run: |ctx| siege(ctx, 4),
};

/// The same for a minute.
pub const SIEGE_MINUTE: Scenario = Scenario {
    name: "siege_minute",
    what: "the same for a minute",
    scope: Scope::Nightly,
    secs: 300,
    run: |ctx| siege(ctx, 60),
    ..SIEGE
};

const RULES: &str = "/tmp/siege.toml";
/// Between two questions, s. Virtual time counts instructions here.
const TURN: f64 = 1.0;
/// A command is answered, and the machine given back, within this time, s.
const ANSWER_MAX: f64 = 1.0;
/// What the run loop uses of a CPU; 0.78 where news are taken without a rest.
const USED_MAX: f64 = 0.2;
/// Memory of the daemon's own, KiB.
const MEMORY_MAX: u64 = 24 * 1024;
/// What it has more after the last turn than after the third, KiB: until then its threads come to what
/// they need at once (6.18: 7,104 to 7,732, then 7,908 to 8,828, then 8,660 to 8,944). 3,352 in each turn
/// where 4 KiB of each connection to the feed stay.
const GROWN_MAX: u64 = 1024;
/// Of the CPU of a real-time task, what other tasks use.
const OTHERS_MAX: f64 = 0.02;
/// Rounds of the five loops in each turn, without which a storm is none.
const ROUNDS: u64 = 1_000;

fn siege(ctx: &Ctx, turns: u64) -> Result<Outcome> {
    stay_out(ctx)?;
    let (rt0_cpu, driver) = (ctx.rt.first()?, ctx.rt.last()?);
    Cpus::one(driver).bind(0)?;
    // so that all news are wanted
    fs::write(RULES, "[[rule]]\ncomm = 'nobody'\nuser = 'root'\nclass = 'rt1'\npriority = 1\n")?;
    let mut observer = Occupancy::attach(ctx.rt, 0)?;
    let rt0 = Spec::new(Kind::Duty).on(Cpus::one(rt0_cpu)).fifo(50);
    let mut tasks = Workers::start("rt0", [rt0])?;
    tasks.wait_begun()?;
    observer.watch([tasks.pid(0)])?;
    let (group, metrics) = (GROUP.to_string(), format!("unix:{METRICS}"));
    let options = ["--adopt", "--config", RULES, "--feed-group", &group, "--metrics", &metrics];
    let mut daemon = ctx.load(&options)?;
    let mut storm = Workers::start("siege", [Spec::new(Kind::Siege)])?;
    storm.wait_begun()?;
    pause(TURN);
    let (loop_ns, begun) = (run_time_ns(daemon.pid())?, observer.snapshot()?);
    let (mut memory, mut answered_s) = (Vec::new(), 0.0_f64);
    for turn in 0..turns {
        let before = storm.counts()[0];
        pause(TURN);
        let rounds = storm.counts()[0] - before;
        enough(rounds, ROUNDS, "rounds of the loops")?;
        let asked = Instant::now();
        told(ctx, &["set", "predict-c-us", &(2_000 + turn).to_string()], 0)?;
        let took = asked.elapsed().as_secs_f64();
        memory.push(status_number(daemon.pid(), "RssAnon")?);
        say(&format!("{rounds} rounds, ctl takes {took:.2} s; {} KiB", memory[memory.len() - 1]));
        ensure!(took <= ANSWER_MAX, "ctl took {took:.2} s");
        answered_s = answered_s.max(took);
    }
    let seen = observer.snapshot()?.since(&begun);
    let used = (run_time_ns(daemon.pid())? - loop_ns) as f64 / seen.at_ns as f64;
    let others = seen.other(rt0_cpu);
    figure("run_loop", format!("{used:.3}"), "CPUs");
    figure("others_beside_rt0", format!("{others:.4}"), "CPUs");
    figure("ctl_answered_at_most", format!("{answered_s:.2}"), "s");
    ensure!(used <= USED_MAX, "the run loop used {used:.3} of a CPU");
    ensure!(others <= OTHERS_MAX, "beside the real-time task others used {others:.4} of its CPU");
    let most = memory.iter().max().context("no turn")?;
    let grown = memory[memory.len() - 1].saturating_sub(memory[2]);
    figure("memory_at_most", most, "KiB");
    figure("memory_grown", grown, "KiB");
    ensure!(*most <= MEMORY_MAX, "it has {most} KiB of memory");
    ensure!(grown <= GROWN_MAX, "its memory has grown by {grown} KiB: {memory:?}");
    daemon.ensure_loaded("besieged")?;

    let asked = Instant::now();
    daemon.signal(Signal::SIGTERM)?;
    until("the machine is given back", PATIENCE, || Ok(scx_state()? == "disabled"))?;
    let took = asked.elapsed().as_secs_f64();
    figure("given_back", format!("{took:.2}"), "s");
    ensure!(took <= ANSWER_MAX, "the end took {took:.2} s");
    let ended = daemon.ended()?;
    ensure!(ended.code == 0, "its end: exit code {}\n{}", ended.code, ended.output);
    say(&format!("it has ended after {:.2} s", asked.elapsed().as_secs_f64()));
    drop((storm, tasks));
    fs::remove_file(RULES)?;
    Ok(Outcome::Passed)
}
