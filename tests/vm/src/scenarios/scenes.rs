// SPDX-License-Identifier: GPL-2.0-only
//! lollobrigida in a guest, judged by an observer that shares nothing with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Ctx, Host, Outcome, Scenario, Scope, say};
use crate::figure::figure;
use crate::guest::pause;
use crate::places::{Places, Seen};
use crate::policy::Policy;

/// Catches: a scene that does not run, under the kernel's default or under scx_artis;
/// a CPU's parts that do not sum to 1; a task that does less than it should.
pub const SCENES: Scenario = Scenario {
    name: "scenes",
    what: "lollobrigida runs all its scenes under the kernel's default and under scx_artis",
    scope: Scope::Nightly,
    boot: &[],
    secs: 41,
    host: Host::Timed,
    complaints: &[],
    run: scenes,
};

/// Catches: time charged to the wrong CPU or task, or lost; a hook that hides system calls
/// from perf.
pub const SCENE_SHARES: Scenario = Scenario {
    name: "scene_shares",
    what: "lollobrigida's shares of time per CPU are those that an observer of its own sees, \
           and perf sees every system call",
    scope: Scope::First,
    boot: &["--icount=1"],
    secs: 21,
    host: Host::Shared,
    complaints: &[],
    run: scene_shares,
};

/// Catches: work that depends on more than the scene; a system call in the measured part.
/// Virtual time counts instructions here, so CPU time does.
pub const SCENE_WORK: Scenario = Scenario {
    name: "scene_work",
    what: "two runs of a computing task execute the same instructions and no system call",
    scope: Scope::Nightly,
    boot: &["--icount", "--cpus", "1"],
    secs: 4,
    host: Host::Shared,
    complaints: &[],
    run: scene_work,
};

/// Catches: a scheduler that is not started, not stopped, or not in charge when a scene is
/// run under it; an order that does not alternate.
pub const SCENE_COMPARE: Scenario = Scenario {
    name: "scene_compare",
    what: "lollobrigida compares two schedulers and gives the machine back",
    scope: Scope::First,
    boot: &[],
    secs: 10,
    host: Host::Alone,
    complaints: &[],
    run: scene_compare,
};

/// Catches: a run that its own real-time tasks keep from ending at its limit, or by a signal. Where
/// lollobrigida is no more urgent than they, both wait for ever.
pub const SCENE_HOGS: Scenario = Scenario {
    name: "scene_hogs",
    what: "a scene of SCHED_FIFO 99 on all CPUs ends at its limit, and at a signal",
    scope: Scope::First,
    boot: &[],
    secs: 8,
    host: Host::Alone,
    complaints: &[],
    run: scene_hogs,
};

/// How far the sum of a CPU's parts may be from 1.
const SUM_TOLERANCE: f64 = 0.01;
/// Of a task's time, how much more a CPU's part may be than what the observer sees there. Time
/// charged to the wrong CPU is 0.2 and more (0.65 with the order of the CPUs reversed).
const CLAIMED_MAX: f64 = 0.01;
/// Of a task's time, how much the observer may see besides: it begins to count when the task has
/// its name, lollobrigida when the task has prepared itself, which takes some 40 ms of at least
/// 1,100. With a CPU that is left out it is 0.56.
const UNTOLD_MAX: f64 = 0.1;
/// Relative difference of the instructions of two runs.
const WORK_TOLERANCE: f64 = 0.01;

fn out(name: &str) -> PathBuf {
    PathBuf::from(format!("/tmp/{name}.json"))
}

/// Runs lollobrigida; fails with what it printed.
fn lollobrigida(args: &[&str]) -> Result<String> {
    let out = Command::new("lollobrigida")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .context("start lollobrigida")?;
    let (stdout, stderr) =
        (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    ensure!(out.status.success(), "lollobrigida {args:?}: {}\n{stdout}{stderr}", out.status);
    Ok(stdout.into_owned())
}

fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&text)?)
}

/// Runs a scene with more arguments; returns its JSON.
fn run(scene: &str, more: &[&str]) -> Result<Value> {
    let path = out("run");
    let file = path.to_string_lossy();
    lollobrigida(&[&["run", scene, "--quiet", "--json", &file], more].concat())?;
    json(&path)
}

fn list<'a>(v: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    v.get(name).and_then(Value::as_array).with_context(|| format!("no list '{name}'"))
}

fn number(v: &Value, name: &str) -> Result<f64> {
    v.get(name).and_then(Value::as_f64).with_context(|| format!("no number '{name}' in {v}"))
}

/// A task's time on each CPU where it was, ns, as lollobrigida shows it.
fn times(task: &Value) -> Result<BTreeMap<u32, f64>> {
    let times = task.get("cpu_time_ns").and_then(Value::as_object).context("no cpu_time_ns")?;
    times.iter().map(|(cpu, ns)| Ok((cpu.parse()?, ns.as_f64().context("no time")?))).collect()
}

/// What must be so of every run.
fn ensure_sound(run: &Value) -> Result<()> {
    let scene = run.get("scene").and_then(Value::as_str).unwrap_or("?");
    for task in list(run, "tasks")? {
        ensure!(task.get("cut").is_none_or(Value::is_null), "{scene}: a task was cut: {task}");
    }
    for cpu in list(run, "cpus")? {
        let parts = ["idle", "irq", "rt", "fair", "other"].map(|part| number(cpu, part));
        let sum: f64 = parts.into_iter().sum::<Result<f64>>()?;
        ensure!((sum - 1.0).abs() <= SUM_TOLERANCE, "{scene}: a CPU's parts sum to {sum}: {cpu}");
    }
    Ok(())
}

fn names() -> Result<Vec<String>> {
    let text = lollobrigida(&["scenes"])?;
    let first = |l: &str| l.split_whitespace().next().map(str::to_owned);
    let names: Vec<_> = text.lines().filter(|l| l.ends_with(" tasks)")).filter_map(first).collect();
    ensure!(names.len() >= 12, "only {} scenes: {text}", names.len());
    Ok(names)
}

fn scenes(ctx: &Ctx) -> Result<Outcome> {
    let names = names()?;
    let begun = Instant::now();
    all_scenes("default", &names)?;
    let mut daemon = ctx.load(&[])?;
    all_scenes("artis", &names)?;
    daemon.ensure_loaded("after the scenes")?;
    daemon.finish()?;
    let secs = begun.elapsed().as_secs_f64();
    say(&format!("{} scenes twice in {secs:.0} s (asked: at most 180)", names.len()));
    Ok(Outcome::Passed)
}

fn all_scenes(under: &str, names: &[String]) -> Result<()> {
    for name in names {
        let begun = Instant::now();
        let result = run(name, &["--short"])?;
        ensure_sound(&result)?;
        let secs = number(&result, "makespan_ns")? / 1e9;
        let whole = begun.elapsed().as_secs_f64();
        say(&format!("{under}: {name}: {secs:.2} s, with all around it {whole:.2} s"));
    }
    Ok(())
}

/// Computing and sleeping tasks, more than CPUs; names are at most 15 letters long.
const MIXED_SCENE: &str = r#"
why = "to be watched by an observer"
[[group]]
name = "compute"
count = 6
compute_us = 1500000
[[group]]
name = "sleepy"
count = 3
compute_us = 400000
sloop_us = 2000
sleep_us = 3000
"#;

/// The path of [`MIXED_SCENE`].
fn mixed_scene() -> Result<String> {
    let path = "/tmp/mixed.toml";
    std::fs::write(path, MIXED_SCENE)?;
    Ok(path.into())
}

fn scene_shares(ctx: &Ctx) -> Result<Outcome> {
    let scene = mixed_scene()?;
    // the speed of the machine is measured here, not while the observer looks
    run(&scene, &["--scale", "0.01"])?;
    for under in ["default", "artis"] {
        let daemon = if under == "artis" { Some(ctx.load(&[])?) } else { None };
        let observer = Places::attach()?;
        let result = run(&scene, &[])?;
        let seen = observer.seen()?;
        drop(observer);
        ensure_sound(&result)?;
        let Apart { claimed, untold } = apart(&result, &seen)?;
        say(&format!("{under}: of a task's time at most {claimed:.4} claimed, {untold:.4} untold"));
        figure(&format!("claimed_under_{under}"), format!("{claimed:.4}"), "shares");
        figure(&format!("untold_under_{under}"), format!("{untold:.4}"), "shares");
        ensure!(claimed <= CLAIMED_MAX, "{under}: {claimed:.4} of a task's time was elsewhere");
        ensure!(untold <= UNTOLD_MAX, "{under}: {untold:.4} of a task's time is missing");
        for task in list(&result, "tasks")? {
            let (made, seen) = (number(task, "calls_made")?, number(task, "calls_seen")?);
            // else a program on the tracepoint takes the events away from perf
            ensure!(made == seen, "{under}: {made} calls made, {seen} seen: {task}");
        }
        daemon.map_or(Ok(()), crate::daemon::Daemon::finish)?;
    }
    Ok(Outcome::Passed)
}

/// How far lollobrigida and the observer are apart, at most over all tasks, each as a part of the
/// task's time by the observer.
#[derive(Default)]
struct Apart {
    /// Time that lollobrigida tells on a CPU and the observer did not see there.
    claimed: f64,
    /// Time that lollobrigida does not tell at all.
    untold: f64,
}

fn apart(run: &Value, seen: &BTreeMap<String, Seen>) -> Result<Apart> {
    let groups = list(run, "groups")?;
    let mut worst = Apart::default();
    for task in list(run, "tasks")? {
        let group = number(task, "group")? as usize;
        let group = groups.get(group).and_then(|g| g.get("name")).and_then(Value::as_str);
        let name = format!("{}.{}", group.context("no such group")?, number(task, "nth")?);
        let seen = seen.get(&name).with_context(|| format!("the observer saw no {name}"))?;
        let told = times(task)?;
        ensure!(!told.is_empty(), "{name} did not run");
        let all_seen = seen.run_ns.values().sum::<u64>() as f64;
        let all_told: f64 = told.values().sum();
        say(&format!(
            "{name}: {:.0} ms by lollobrigida, {:.0} ms by the observer",
            all_told / 1e6,
            all_seen / 1e6
        ));
        worst.untold = worst.untold.max(1.0 - all_told / all_seen);
        for (cpu, ns) in told {
            let theirs = *seen.run_ns.get(&cpu).unwrap_or(&0) as f64;
            worst.claimed = worst.claimed.max((ns - theirs) / all_seen);
        }
    }
    Ok(worst)
}

/// The work is a number of iterations: no calibration has a part in it.
fn pure_scene(loops: u32) -> Result<String> {
    let path = format!("/tmp/pure-{loops}.toml");
    let text = format!("why = \"pure computing\"\n[[group]]\nname = \"pure\"\nloop = {loops}\n");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// CPU time, ns, and system calls by the observer, of one run.
fn pure(loops: u32) -> Result<(f64, u64)> {
    let observer = Places::attach()?;
    let result = run(&pure_scene(loops)?, &["--loops-per-us", "0.1"])?;
    let seen = observer.seen()?;
    let task = list(&result, "tasks")?.first().context("no task")?;
    ensure!(number(task, "calls_seen")? == 0.0, "calls in the measured part: {task}");
    let calls = seen.get("pure.0").context("the observer saw no pure.0")?.calls;
    Ok((number(task, "cpu_ns")?, calls))
}

fn scene_work(_: &Ctx) -> Result<Outcome> {
    pure(100)?; // caches of files
    let (first, second, longer) = (pure(20_000)?, pure(20_000)?, pure(40_000)?);
    let apart = (first.0 - second.0).abs() / first.0;
    say(&format!(
        "20000 iterations: {:.0} and {:.0} ns, {:.3} % apart",
        first.0,
        second.0,
        apart * 100.0
    ));
    say(&format!(
        "40000 iterations: {:.0} ns; system calls in all: {} {} {}",
        longer.0, first.1, second.1, longer.1
    ));
    ensure!(apart <= WORK_TOLERANCE, "the same work, but {:.2} % apart", apart * 100.0);
    ensure!(longer.0 > 1.9 * first.0, "twice the work takes {:.2} times", longer.0 / first.0);
    ensure!(
        first.1 == longer.1,
        "{} system calls in a run, {} in one of twice the work",
        first.1,
        longer.1
    );
    Ok(Outcome::Passed)
}

fn scene_compare(ctx: &Ctx) -> Result<Outcome> {
    let scene = mixed_scene()?;
    let path = out("compare");
    let file = path.to_string_lossy();
    let artis = format!("{}:--rt-cpus {}", ctx.program.display(), ctx.rt);
    let text = lollobrigida(&[
        "compare", &scene, "--scale", "0.2", "--under", "default", "--under", &artis, "--runs",
        "2", "--warmup", "0", "--json", &file,
    ])?;
    say(&format!("compared:\n{text}"));
    ensure!(crate::guest::scx_state()? == "disabled", "a scheduler was left in charge");
    let all = json(&path)?;
    let runs = list(&all, "runs")?;
    ensure!(runs.len() == 2, "{} schedulers", runs.len());
    for (of, begins) in runs.iter().zip([None, Some("artis")]) {
        let of = of.as_array().context("no runs")?;
        ensure!(of.len() == 2, "{} runs", of.len());
        for run in of {
            ensure_sound(run)?;
            let ops = run.get("scheduler").and_then(|s| s.get("ops")).and_then(Value::as_str);
            let right = match begins {
                None => ops.is_none(),
                Some(begins) => ops.is_some_and(|ops| ops.starts_with(begins)),
            };
            ensure!(right, "in charge was {ops:?}");
        }
    }
    Ok(Outcome::Passed)
}

fn scene_hogs(ctx: &Ctx) -> Result<Outcome> {
    const LIMIT_MS: u32 = 2_000;
    let scene = |limit_ms: u32| -> Result<String> {
        let mut text = format!("why = 'hogs'\ngood = 'it ends'\nlimit_ms = {limit_ms}\n");
        for cpu in ctx.all().iter() {
            text += &format!(
                "[[group]]\nname = 'hog{cpu}'\nsched = 'FIFO'\npriority = 99\ncpus = '{cpu}'\n"
            );
        }
        let path = format!("/tmp/hogs-{limit_ms}.toml");
        std::fs::write(&path, text)?;
        Ok(path)
    };
    let (limited, path) = (scene(LIMIT_MS)?, out("hogs"));
    let file = path.to_string_lossy();
    let cut = Command::new("lollobrigida")
        .args(["run", &limited, "--quiet", "--json", &file])
        .stdin(Stdio::null())
        .output()
        .context("start lollobrigida")?;
    ensure!(
        cut.status.code() == Some(1),
        "{}: {}",
        cut.status,
        String::from_utf8_lossy(&cut.stderr)
    );
    for task in list(&json(&path)?, "tasks")? {
        ensure!(!task.get("cut").is_none_or(Value::is_null), "control: not cut: {task}");
    }
    say("it has ended at its limit");

    let mut child = Command::new("lollobrigida")
        .args(["run", &scene(600_000)?, "--quiet", "--json", &file])
        .stdin(Stdio::null())
        .spawn()
        .context("start lollobrigida")?;
    let runner = Pid::from_raw(child.id().cast_signed());
    // this thread gets no CPU beside the hogs
    let send = move || {
        Policy::set_deadline(Duration::from_millis(1), Duration::from_millis(100))?;
        pause(3.0);
        kill(runner, Signal::SIGTERM).context("SIGTERM")
    };
    let timer = std::thread::spawn(send);
    let status = child.wait()?;
    timer.join().map_err(|_| anyhow!("the thread that sends it panicked"))??;
    say(&format!("and at a signal: {status}"));
    Ok(Outcome::Passed)
}
