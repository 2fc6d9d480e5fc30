// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's preemption models, and switching them.

use std::fs;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{CALM_AT_2_MS, Ctx, Host, Outcome, Scenario, Scope, say};
use crate::daemon::{Daemon, Stats};
use crate::guest::{PATIENCE, pause, until, write};
use crate::load::Workers;
use crate::observe::{Observer, Report};
use crate::worker::{Kind, Spec};

/// Catches: a body on an RT CPU under a model that is said to move tasks at once; bodies that are
/// not counted under one that does not; a model that is not set, not put back, or put back wrong
/// after a crash.
pub const PREEMPT_MODELS: Scenario = Scenario {
    name: "preempt_models",
    what: "preempt=lazy keeps bodies off RT CPUs, under none they are told of; --set-preempt, restore",
    scope: Scope::First,
    boot: &[],
    secs: 42,
    host: Host::Alone,
    complaints: &[],
    run: models,
};

/// Shows the preemption model, and sets it.
pub const KNOB: &str = "/sys/kernel/debug/sched/preempt";
/// The model of the other scenarios.
pub const USUAL: &str = "full";
/// Bodies on RT CPUs that a window has to have, where there are any.
const ENOUGH: u64 = 20;

fn models(ctx: &Ctx) -> Result<Outcome> {
    use Kind::{Await, Call, Mixed, Touch};
    ensure!(model()? == USUAL, "the guest's model is {}", model()?);
    let mut observer = Observer::attach(ctx.rt, false)?;
    // none that only computes: it would keep the RT CPUs from those that make bodies there
    let kinds = [Mixed, Mixed, Mixed, Mixed, Mixed, Mixed, Call, Touch];
    let mut workers = Workers::start("modelled", kinds.map(Spec::new))?;
    workers.wait_begun()?;
    // but for the windows: the kernel takes half a minute to switch models under load
    workers.freeze(true)?;
    let mut turn = |what: &str, args: &[&str]| -> Result<(Daemon, Report, u64)> {
        let daemon = ctx.load(&[&CALM_AT_2_MS, args].concat())?;
        workers.freeze(false)?;
        pause(0.7);
        let mut stats = daemon.stats()?;
        let before = stats.counter("bodies_on_rt")?;
        let seen = observer.watch(2.0)?;
        let told = Stats::counter_in(&stats.read()?, "bodies_on_rt")? - before;
        workers.freeze(true)?;
        say(&format!("{what}: {} bodies on RT CPUs, {told} told", seen.rt.endangering));
        Ok((daemon, seen, told))
    };

    // 6.12 has no lazy; 7.0 PREEMPT_RT and 7.3 have nothing else beside full
    let offered = offered()?;
    let offers = |model: &str| offered.iter().any(|offered| offered == model);
    let mut before = "";

    if offers("lazy") {
        before = "lazy";
        write(KNOB, before)?;
        let (daemon, seen, _) = turn(before, &[])?;
        ensure!(seen.rt.endangering == 0, "under lazy preemption\n{}", seen.culprits());
        daemon.finish()?;
    }

    if offers("none") {
        before = "none";
        write(KNOB, before)?;
        let (daemon, seen, told) = turn(before, &[])?;
        ensure!(seen.rt.endangering > ENOUGH, "control: no bodies on RT CPUs under none");
        ensure!(told > ENOUGH, "{told} bodies are told of under none");
        let told_of = causes(ctx, &daemon)?;
        ensure!(
            told_of.iter().all(|cause| cause.starts_with("call ") || cause == "fault"),
            "{told_of:?}"
        );
        daemon.finish()?;
    }

    if offers("voluntary") {
        before = "voluntary";
        write(KNOB, before)?;
        let (daemon, seen, _) = turn(before, &[])?;
        // these leave at a preemption point, so they do not run to their end, and are not told of
        ensure!(seen.rt.endangering > ENOUGH, "control: no bodies on RT CPUs under voluntary");
        // but for those that sleep
        let waiting = Workers::start("waiting", [Await; 4].map(Spec::new))?;
        until("a call that sleeps is told of", PATIENCE, || {
            Ok(causes(ctx, &daemon)?.iter().any(|cause| cause == "call epoll_wait"))
        })?;
        daemon.finish()?;
        drop(waiting); // their end begins on RT CPUs under this model, too
    }

    let (daemon, seen, told) = turn("switched to full", &["--set-preempt", USUAL])?;
    ensure!(model()? == USUAL, "--set-preempt: the model is {}", model()?);
    ensure!(seen.rt.endangering + told == 0, "{told} bodies are told of\n{}", seen.culprits());
    daemon.finish()?;
    ensure!(model()? == before, "the model is {}, and not {before} again", model()?);

    let daemon = ctx.load(&["--set-preempt", USUAL])?;
    daemon.stop(Signal::SIGKILL)?;
    ensure!(model()? == USUAL, "after a crash the model is {}", model()?);
    let restored = Daemon::run(&ctx.program, &["restore"])?;
    ensure!(restored.code == 0, "restore: {}\n{}", restored.code, restored.output);
    ensure!(model()? == before, "restore: the model is {}\n{}", model()?, restored.output);
    write(KNOB, USUAL)?;
    drop(workers);
    // a new instance removes the sockets of the dead one
    ctx.load(&[]).context("after a crash")?.finish()?;
    Ok(Outcome::Passed)
}

/// What the latest body on each RT CPU was.
fn causes(ctx: &Ctx, daemon: &Daemon) -> Result<Vec<String>> {
    let stats = daemon.stats()?.read()?;
    let of = |cpu: u32| stats["cpus"][cpu.to_string()]["body_cause"].as_str().map(str::to_string);
    ctx.rt
        .iter()
        .map(|cpu| of(cpu).with_context(|| format!("no body_cause of CPU {cpu}")))
        .collect()
}

/// The models that this kernel has.
fn offered() -> Result<Vec<String>> {
    let text = fs::read_to_string(KNOB).context(KNOB)?;
    Ok(text.split_whitespace().map(|word| word.trim_matches(['(', ')']).to_string()).collect())
}

/// The word in brackets.
fn model() -> Result<String> {
    let text = fs::read_to_string(KNOB).context(KNOB)?;
    let word = text.split_whitespace().find_map(|w| w.strip_prefix('(')?.strip_suffix(')'));
    word.map(str::to_string).with_context(|| format!("{KNOB}: {text}"))
}
