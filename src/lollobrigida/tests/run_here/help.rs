// SPDX-License-Identifier: GPL-2.0-only
//! Plans, a turn for each test, and what is left behind.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, thread};

use lollobrigida::execute::run::RunOptions;
use lollobrigida::plan::{Phase, Plan, Rhythm, Scale, Task};
use lollobrigida::result::{Run, Scheduler};

/// Some hundred milliseconds in a debug build.
pub const SOME_STEPS: u64 = 60_000_000;

static TURN: Mutex<()> = Mutex::new(());

/// Tests that look at this process's children come one after another.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names the program to start as actors, where it is not the one that was built.
pub const PROGRAM: &str = "LOLLOBRIGIDA_OF_TEST";

pub fn options() -> RunOptions {
    let built = || env!("CARGO_BIN_EXE_lollobrigida").into();
    RunOptions { program: std::env::var_os(PROGRAM).map_or_else(built, Into::into) }
}

pub fn run(plan: &Plan) -> Run {
    let scheduler = Scheduler { name: "here".into(), ops: None };
    lollobrigida::execute::run::run(plan, scheduler, &options()).expect("a run")
}

/// A plan of one group for each list of tasks.
pub fn plan(groups: Vec<Vec<Task>>) -> Plan {
    let names = (0..groups.len()).map(|group| format!("g{group}")).collect();
    let number = |(group, tasks): (usize, Vec<Task>)| {
        let of_group = move |(nth, task): (u32, Task)| Task { group, nth, ..task };
        (0..).zip(tasks).map(of_group)
    };
    Plan {
        scene: "test".into(),
        why: "test".into(),
        good: String::new(),
        scale: Scale { steps_per_us: 500.0, steps_per_loop: 4096.0, work: 1.0 },
        limit_us: None,
        rt_cpus: None,
        groups: names,
        tasks: groups.into_iter().enumerate().flat_map(number).collect(),
        links: vec![],
    }
}

/// A task that computes without a pause.
pub fn steady(work_steps: u64) -> Task {
    Task {
        phases: vec![Phase { work_steps, duration_us: None, rhythm: Rhythm::Steady, call: None }],
        ..Task::default()
    }
}

/// Process ids of the children of a process, zombies included.
pub fn children_of(parent: u32) -> Vec<i32> {
    let me = parent.to_string();
    let child = |entry: fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // pid (name) state parent
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.to_owned();
        (parent == me).then_some(pid)
    };
    fs::read_dir("/proc").expect("/proc").flatten().filter_map(child).collect()
}

/// Of this process: its tasks.
fn children() -> Vec<i32> {
    children_of(std::process::id())
}

/// Waits until `runner` has `count` tasks and each has computed for a while: they are in
/// their measured part.
pub fn wait_until_running(runner: u32, count: usize) -> Vec<i32> {
    let busy = |pid: &i32| {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        let cpu_ns: u64 = text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0);
        cpu_ns > 200_000_000
    };
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let pids = children_of(runner);
        if pids.len() == count && pids.iter().all(busy) {
            return pids;
        }
        assert!(Instant::now() < patience, "{count} tasks did not start: {pids:?}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// No process, board or cgroup of this process is left.
pub fn assert_nothing_left() {
    assert_eq!(children(), Vec::<i32>::new());
    // the runner's waiting thread lets go of the board a moment after the run
    let boards = || {
        let fds = fs::read_dir("/proc/self/fd").expect("own files").flatten();
        fds.filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|link| link.to_string_lossy().contains("memfd:lollobrigida"))
            .count()
    };
    let patience = Instant::now() + Duration::from_secs(10);
    while boards() > 0 {
        assert!(Instant::now() < patience, "a board is still open");
        thread::sleep(Duration::from_millis(5));
    }
    let own = format!("lollobrigida-{}", std::process::id());
    assert!(!exists_below(Path::new("/sys/fs/cgroup"), &own), "cgroup {own} is still there");
}

fn exists_below(dir: &Path, name: &str) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .any(|entry| entry.file_name() == *name || exists_below(&entry.path(), name))
}
