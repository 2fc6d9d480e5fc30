// SPDX-License-Identifier: GPL-2.0-only
//! Without rights: what cannot be set or seen is told, the rest runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use lollobrigida::plan::Task;
use lollobrigida::result::Run;
use lollobrigida::scene::{Cgroup, Sched};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::Uid;

use super::help::{PROGRAM, SOME_STEPS, assert_nothing_left, options, plan, run, steady, turn};

const NOBODY: u32 = 65534;

/// Runs an ignored test of this file as another user; its result stands between two lines.
fn as_nobody(test: &str) -> Option<Run> {
    if !Uid::effective().is_root() {
        eprintln!("not root: only this user's own rights are tested");
        return None;
    }
    // that user may not see where this one is built, such as below /root
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("changed");
    let copied = |from: &Path, name: &str| {
        let to = dir.path().join(name);
        fs::copy(from, &to).expect("copied");
        to
    };
    let own = std::env::current_exe().expect("own program");
    let mut command = Command::new(copied(&own, "rights"));
    command.env(PROGRAM, copied(&options().program, "lollobrigida"));
    command.args(["--exact", &format!("rights::{test}"), "--ignored", "--nocapture"]);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    let Output { status, stdout, stderr } = command.output().expect("started");
    let text = String::from_utf8_lossy(&stdout);
    assert!(status.success(), "{text}\n{}", String::from_utf8_lossy(&stderr));
    let json = text.lines().find(|line| line.starts_with('{')).expect("a result");
    Some(serde_json::from_str(json).expect("a result"))
}

fn scene() -> Run {
    let fifo = Task { sched: Sched::Fifo { priority: 10 }, ..steady(SOME_STEPS) };
    let eager = Task { sched: Sched::Normal { nice: -10 }, ..steady(SOME_STEPS) };
    let cgroup = Some(Cgroup { path: "low".into(), weight: Some(10) });
    let low = Task { cgroup, ..steady(SOME_STEPS) };
    run(&plan(vec![vec![fifo], vec![eager], vec![low]]))
}

fn why<'r>(run: &'r Run, what: &str) -> Vec<&'r str> {
    let of = run.missing.iter().filter(|missing| missing.what == what);
    of.map(|missing| missing.why.as_str()).collect()
}

#[test]
#[ignore = "is started as another user by a test below"]
fn child_plain() {
    println!("\n{}", serde_json::to_string(&scene()).expect("JSON"));
    assert_nothing_left();
}

#[test]
#[ignore = "is started as another user by a test below"]
fn child_few_files() {
    setrlimit(Resource::RLIMIT_NOFILE, 60, 60).expect("less needs no rights");
    println!("\n{}", serde_json::to_string(&scene()).expect("JSON"));
}

#[test]
fn what_may_not_be_set_is_told_and_the_rest_runs() {
    let _turn = turn();
    let Some(run) = as_nobody("child_plain") else { return };
    assert!(run.tasks.iter().all(|task| task.cut.is_none() && task.steps == SOME_STEPS));
    let sched = why(&run, "sched");
    assert_eq!(sched.len(), 2, "{sched:?}");
    assert!(sched.iter().all(|why| why.contains("run as root")), "{sched:?}");
    assert!(sched.iter().any(|why| why.contains("`g0`: SCHED_FIFO 10")), "{sched:?}");
    assert!(sched.iter().any(|why| why.contains("`g1`: SCHED_OTHER with nice -10")), "{sched:?}");
    assert_eq!(why(&run, "cgroup").len(), 1);
    assert!(run.cpus.iter().all(|cpu| cpu.rt == Some(0.0)), "nobody was a real-time task");
    for task in &run.tasks {
        let sum: u64 = task.cpu_time_ns.as_ref().expect("known").values().sum();
        // a hypervisor's time is in the one and not in the other
        assert!(sum >= task.cpu_ns / 100 * 97, "{sum} of {}", task.cpu_ns);
        assert!(task.migrations.is_some());
    }
}

#[test]
fn without_perf_events_the_tasks_tell_themselves() {
    let _turn = turn();
    let Some(run) = as_nobody("child_few_files") else { return };
    for what in ["cpu_time_ns", "timeline"] {
        let source = &run.sources[what];
        assert!(source.starts_with("task's own look: too many perf events"), "{source}");
    }
    assert!(why(&run, "migrations")[0].contains("ulimit -n"));
    assert!(!run.timeline.is_empty());
    for task in &run.tasks {
        assert_eq!((task.migrations, task.steps, &task.cut), (None, SOME_STEPS, &None));
        let sum: u64 = task.cpu_time_ns.as_ref().expect("told").values().sum();
        assert!(sum.abs_diff(task.cpu_ns) as f64 / (task.cpu_ns as f64) < 0.03);
    }
}
