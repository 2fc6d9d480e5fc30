// SPDX-License-Identifier: GPL-2.0-only
//! Runs that do not end as planned still end, tell how, and leave nothing behind.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use lollobrigida::execute::interrupt;
use lollobrigida::execute::run::signals;
use lollobrigida::execute::sched_ext::{InCharge, SchedExt};
use lollobrigida::plan::{Phase, Rhythm, Task};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::Pid;

use super::help::{
    SOME_STEPS, assert_nothing_left, options, plan, run, steady, turn, wait_until_running,
};

#[test]
fn the_limit_cuts() {
    let _turn = turn();
    let sleeper = Phase {
        work_steps: u64::MAX,
        duration_us: None,
        rhythm: Rhythm::Sleep { every_steps: 1000, sleep_us: 60_000_000 },
        call: None,
    };
    let sleeper = Task { phases: vec![sleeper], ..steady(0) };
    let mut plan = plan(vec![vec![steady(u64::MAX), steady(u64::MAX)], vec![sleeper]]);
    plan.limit_us = Some(300_000);
    let run = run(&plan);
    assert!(run.cut);
    assert!(run.makespan_ns >= 300_000_000, "{}", run.makespan_ns);
    for task in &run.tasks {
        assert_eq!(task.cut.as_deref(), Some("the limit of 300ms"));
        assert!(task.steps > 0);
        // the stop signal is none of the scene's calls
        assert!(task.calls_seen.is_none_or(|seen| seen == task.calls_made), "{task:?}");
    }
    assert!(run.groups.iter().all(|group| group.finished == 0));
    assert_nothing_left();
}

#[test]
fn a_killed_task_is_told_and_the_others_finish() {
    let _turn = turn();
    let plan = plan(vec![vec![steady(u64::MAX)], vec![steady(10 * SOME_STEPS)]]);
    let killer = thread::spawn(|| {
        let pids = wait_until_running(std::process::id(), 2);
        // tasks are started in the plan's order
        kill(Pid::from_raw(pids[0]), Signal::SIGKILL).expect("killed");
    });
    let run = run(&plan);
    killer.join().expect("killer");
    assert!(!run.cut);
    let (killed, other) = (&run.tasks[0], &run.tasks[1]);
    assert_eq!(killed.cut.as_deref(), Some("killed by SIGKILL"));
    assert!(killed.wall_ns > 0 && killed.cpu_ns > 0);
    assert_eq!((other.steps, &other.cut), (10 * SOME_STEPS, &None));
    assert_nothing_left();
}

#[test]
fn signals_cut_the_run_not_the_runner() {
    let _turn = turn();
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // one that is ignored, as in a shell's background, stays ignored
        // SAFETY: no handler.
        unsafe { sigaction(signal, &default) }.expect("set");
        let sender = thread::spawn(move || {
            wait_until_running(std::process::id(), 2);
            kill(Pid::this(), signal).expect("sent");
        });
        let run = run(&plan(vec![vec![steady(u64::MAX), steady(u64::MAX)]]));
        sender.join().expect("sender");
        assert!(run.cut && signals::came() && interrupt::pending());
        let told = |task: &lollobrigida::result::Task| {
            task.cut.as_deref() == Some("a signal to the runner")
        };
        assert!(run.tasks.iter().all(told), "{:?}", run.tasks);
        assert_nothing_left();
    }
}

#[test]
fn a_program_without_tasks_is_no_run() {
    let _turn = turn();
    let mut options = options();
    options.program = "/bin/false".into();
    let scheduler = InCharge::scheduler(SchedExt::here().read().as_ref());
    let plan = plan(vec![vec![steady(1), steady(1)]]);
    let err = lollobrigida::execute::run::run(&plan, scheduler, &options).expect_err("no run");
    assert!(
        format!("{err:#}").contains("cannot prepare: ended by itself with exit code 1"),
        "{err:#}"
    );
    assert_nothing_left();
}

#[test]
#[ignore = "is started and killed by the test below"]
fn child_endless() {
    run(&plan(vec![vec![steady(u64::MAX), steady(u64::MAX)]]));
}

#[test]
fn tasks_end_with_a_runner_that_is_killed() {
    let _turn = turn();
    let mut runner = Command::new(std::env::current_exe().expect("own program"));
    let runner = runner.args(["--exact", "ends::child_endless", "--ignored"]).stdout(Stdio::null());
    let mut runner = runner.spawn().expect("started");
    let tasks = wait_until_running(runner.id(), 2);
    let lives = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // a task is named after its group
        stat.contains("(g0.") && !stat.contains(") Z ")
    };
    assert!(tasks.iter().all(lives));
    runner.kill().expect("killed");
    runner.wait().expect("reaped");
    let patience = Instant::now() + Duration::from_secs(30);
    while tasks.iter().any(lives) {
        assert!(Instant::now() < patience, "tasks {tasks:?} live on");
        thread::sleep(Duration::from_millis(5));
    }
}
