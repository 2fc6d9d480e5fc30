// SPDX-License-Identifier: GPL-2.0-only
//! Scenes of a few lines, run by processes forked from the test.

use std::time::Duration;

use lollobrigida::actor;
use lollobrigida::actor::board::{Board, State, Wait};
use lollobrigida::actor::report::Report;
use lollobrigida::plan::{self, Plan, Scale};
use lollobrigida::scene::{Amount, Call, CallKind, Cpus, Group, Phase, Rhythm, Scene, Sched};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

/// Longer than any of the scenes takes on the slowest machine.
pub const LONG: Duration = Duration::from_secs(60);

pub const SCALE: Scale = Scale { steps_per_us: 500.0, steps_per_loop: 4096.0, work: 1.0 };

pub fn group(name: &str, phase: Phase) -> Group {
    Group {
        name: name.into(),
        count: 1,
        sched: Sched::default(),
        cpus: None,
        cgroup: None,
        start_us: 0,
        spread_us: 0,
        memory_kb: 0,
        jitter_pct: 0,
        follows: vec![],
        buffer: 1,
        item_kb: 1,
        phases: vec![phase],
    }
}

pub fn phase(loops: f64, rhythm: Rhythm) -> Phase {
    Phase { work: Some(Amount::Loops(loops)), duration_ms: None, rhythm, call: None }
}

pub fn endless(rhythm: Rhythm) -> Phase {
    Phase { work: None, duration_ms: None, rhythm, call: None }
}

pub fn calling(kind: CallKind, turns: u32) -> Phase {
    let call = Some(Call { kind, every: Amount::Loops(0.5) });
    Phase { call, ..phase(f64::from(turns) / 2.0, Rhythm::Steady) }
}

pub fn scene(groups: Vec<Group>) -> Scene {
    Scene {
        name: "test".into(),
        why: String::new(),
        good: String::new(),
        seed: 1,
        limit_ms: Some(60_000),
        rt_cpus: None,
        groups,
    }
}

pub fn build(groups: Vec<Group>) -> Plan {
    plan::build(&scene(groups), &SCALE, &Cpus([0, 1].into())).unwrap()
}

/// Processes that end with the test.
pub struct Children(pub Vec<Pid>);

impl Drop for Children {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill(*pid, Signal::SIGKILL);
            let _ = waitpid(*pid, None);
        }
    }
}

/// Forks a process that does `before` and is task `i` then.
pub fn spawn(board: &Board, i: usize, before: fn()) -> Pid {
    // SAFETY: the child runs the actor and exits without unwinding into the test.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            before();
            let failed = actor::main(board.fd(), i).is_err();
            // SAFETY: ends the process without the test's own exit handlers.
            unsafe { libc::_exit(failed.into()) }
        }
    }
}

/// Starts all tasks of a plan, does `meanwhile`, and returns the reports.
pub fn run_and(plan: &Plan, meanwhile: impl FnOnce(&Board)) -> Vec<Report> {
    let board = Board::create(plan).unwrap();
    let mut children = Children((0..plan.tasks.len()).map(|i| spawn(&board, i, || {})).collect());
    assert_eq!(board.wait_ready(LONG), Wait::All);
    board.start();
    meanwhile(&board);
    assert_eq!(board.wait_done(Some(LONG)), Wait::All);
    board.release();
    for pid in children.0.drain(..) {
        waitpid(pid, None).unwrap();
    }
    (0..plan.tasks.len()).map(|i| board.report(i).unwrap()).collect()
}

pub fn run(plan: &Plan) -> Vec<Report> {
    run_and(plan, |_| {})
}

/// Sleeps until a task runs.
pub fn await_running(board: &Board, i: usize) {
    while board.state(i) < State::Running {
        std::thread::sleep(Duration::from_millis(1));
    }
}
