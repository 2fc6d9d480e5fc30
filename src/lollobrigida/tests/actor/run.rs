// SPDX-License-Identifier: GPL-2.0-only
//! Real tasks do their plan, no more and no less, and tell it.

use std::time::Duration;

use crate::help::*;
use lollobrigida::actor::board::{Board, State, Wait};
use lollobrigida::actor::report::latency;
use lollobrigida::scene::{Amount, Call, CallKind, Group, Phase, Rhythm};
use nix::sys::signal::{Signal, kill};

const LOOP: u64 = 4096;
const TENTH: Amount = Amount::Loops(1.5);

#[test]
fn each_rhythm_does_the_steps_of_its_plan() {
    let sleep = Rhythm::Sleep { every: TENTH, sleep_us: 100 };
    let periodic = Rhythm::Periodic { period_us: 500, burst: TENTH, deadline_us: 500 };
    let plan = build(vec![
        group("steady", phase(25.5, Rhythm::Steady)),
        group("sleep", phase(15.0, sleep)),
        Group { jitter_pct: 50, ..group("jitter", phase(15.0, sleep)) },
        group("periodic", phase(15.0, periodic)),
        Group {
            memory_kb: 64,
            phases: vec![phase(3.0, Rhythm::Steady), phase(3.0, sleep)],
            ..group("two", phase(1.0, sleep))
        },
    ]);
    let told = run(&plan);
    for (task, report) in plan.tasks.iter().zip(&told) {
        let planned: u64 = task.phases.iter().map(|p| p.work_steps).sum();
        let name = &plan.groups[task.group];
        assert_eq!(report.steps, planned, "{name}");
        assert_eq!(report.steps_per_cpu.values().sum::<u64>(), planned, "{name}");
        assert_eq!((report.cut, &report.failed), (false, &None), "{name}");
        assert!(report.ended_ns > report.begun_ns, "{name}");
        let spans = &report.spans;
        assert!(spans.iter().all(|s| s.from_ns <= s.to_ns && s.to_ns <= report.ended_ns));
        assert!(spans.is_sorted_by_key(|s| s.from_ns));
    }
    let sleeps: Vec<u64> = told.iter().map(|r| r.calls.sleeps).collect();
    assert_eq!((sleeps[0], sleeps[1], sleeps[4]), (0, 9, 1));
    assert!((6..=20).contains(&sleeps[2]), "{sleeps:?}");
    assert_eq!(told[0].wakeup, None);
    let wakeup = latency(told[1].wakeup.as_ref().unwrap());
    assert_eq!(wakeup.count, 9);
    assert!(wakeup.min_ns > 0 && wakeup.min_ns <= wakeup.p50_ns && wakeup.p50_ns <= wakeup.max_ns);

    let periodic = &told[3];
    assert_eq!(periodic.periods, 10 + periodic.left_out);
    assert!(periodic.misses >= periodic.left_out && periodic.misses <= periodic.periods);
}

#[test]
fn tasks_begin_after_their_offset_and_phases_end_at_their_time() {
    let late = Group { start_us: 30_000, ..group("late", phase(1.0, Rhythm::Steady)) };
    let timed = Phase { duration_ms: Some(20), ..endless(Rhythm::Steady) };
    let asleep = Phase {
        duration_ms: Some(20),
        ..endless(Rhythm::Sleep { every: TENTH, sleep_us: 60_000_000 })
    };
    let told = run(&build(vec![late, group("timed", timed), group("asleep", asleep)]));
    assert!(told[0].begun_ns >= 30_000_000 && told[0].calls.sleeps == 1);
    assert!(told[1].ended_ns - told[1].begun_ns >= 20_000_000);
    assert!(told[1].steps > 0 && !told[1].cut);
    assert!(told[2].ended_ns < 60_000_000_000 && !told[2].cut);
    assert_eq!(told[2].steps, LOOP * 3 / 2);
}

#[test]
fn a_burst_longer_than_its_period_is_missed_and_leaves_periods_out() {
    let rhythm = Rhythm::Periodic { period_us: 10, burst: Amount::Loops(20.0), deadline_us: 10 };
    let told = run(&build(vec![group("late", phase(60.0, rhythm))]));
    let late = &told[0];
    assert_eq!(late.misses, late.periods);
    assert_eq!(late.periods - late.left_out, 3);
    assert!(late.left_out >= 2);
}

#[test]
fn the_stop_flag_ends_computing_sleeping_and_waiting() {
    let forever = Rhythm::Sleep { every: TENTH, sleep_us: 600_000_000 };
    let items = Rhythm::Items { burst: TENTH };
    let follow =
        |name: &str, of: &str, phase| Group { follows: vec![of.into()], ..group(name, phase) };
    let plan = build(vec![
        group("computes", endless(Rhythm::Steady)),
        group("sleeps", endless(forever)),
        Group { start_us: 600_000_000, ..group("not begun", phase(1.0, Rhythm::Steady)) },
        follow("waits", "sleeps next", endless(items)),
        Group { start_us: 600_000_000, ..group("sleeps next", phase(1.0, Rhythm::Steady)) },
        group("fills", endless(Rhythm::Sleep { every: TENTH, sleep_us: 0 })),
        Group { start_us: 600_000_000, ..follow("does not take", "fills", endless(items)) },
    ]);
    let told = run_and(&plan, |board| {
        (0..plan.tasks.len()).for_each(|i| await_running(board, i));
        assert_eq!(board.wait_done(Some(Duration::from_millis(50))), Wait::Late);
        board.stop();
    });
    assert!(told.iter().all(|r| r.cut && r.failed.is_none()), "{told:#?}");
    assert!(told[0].steps > 0);
    assert_eq!((told[3].items_taken, told[5].items_posted), (0, 1));
}

#[test]
fn a_killed_task_is_given_up_and_its_followers_end() {
    let plan = build(vec![
        Group { start_us: 600_000_000, ..group("killed", phase(1.0, Rhythm::Steady)) },
        Group {
            follows: vec!["killed".into()],
            ..group("follows", endless(Rhythm::Items { burst: TENTH }))
        },
    ]);
    let told = run_and(&plan, |board| {
        kill(board.pid(0).unwrap(), Signal::SIGKILL).unwrap();
        board.give_up(0, "killed by the test");
    });
    assert_eq!(told[0].failed.as_deref(), Some("killed by the test"));
    assert_eq!((told[1].steps, told[1].cut, &told[1].failed), (0, false, &None));
}

#[test]
fn a_task_that_cannot_prepare_says_why() {
    let board = Board::create(&build(vec![group("orphan", phase(1.0, Rhythm::Steady))])).unwrap();
    // a child of a child: not started by the runner
    let between = || {
        // SAFETY: the child goes on as the task; its parent only waits.
        if let nix::unistd::ForkResult::Parent { child } = unsafe { nix::unistd::fork() }.unwrap() {
            nix::sys::wait::waitpid(child, None).unwrap();
            // SAFETY: as in the helper.
            unsafe { libc::_exit(0) }
        }
    };
    let _children = Children(vec![spawn(&board, 0, between)]);
    assert_eq!(board.wait_ready(LONG), Wait::All);
    assert_eq!(board.wait_done(Some(LONG)), Wait::All);
    assert_eq!(board.state(0), State::Failed);
    let why = board.report(0).unwrap().failed.unwrap();
    assert!(why.contains("did not start this task itself"), "{why}");
}

#[test]
fn a_task_without_its_memory_says_so_and_the_others_run() {
    let plan = build(vec![
        Group { memory_kb: u64::MAX, ..group("greedy", phase(1.0, Rhythm::Steady)) },
        group("modest", phase(1.0, Rhythm::Steady)),
    ]);
    let told = run(&plan);
    assert!(told[0].failed.as_ref().unwrap().contains("no memory of"), "{told:?}");
    assert_eq!(told[1].failed, None);
}

#[test]
fn the_same_plan_is_the_same_work() {
    let rhythm = Rhythm::Sleep { every: TENTH, sleep_us: 10 };
    let call = Some(Call { kind: CallKind::Getppid, every: Amount::Loops(0.7) });
    let phase = Phase { call, ..phase(40.0, rhythm) };
    let plan = build(vec![Group { jitter_pct: 80, count: 2, ..group("jitter", phase) }]);
    let (one, other) = (run(&plan), run(&plan));
    assert_eq!((one[0].calls, one[1].calls), (other[0].calls, other[1].calls));
    assert_eq!(one[0].steps, other[0].steps);
    assert_ne!(one[0].calls.sleeps, one[1].calls.sleeps);
}

#[test]
fn tasks_end_with_their_runner() {
    let (from, to) = nix::unistd::pipe().unwrap();
    // SAFETY: the child makes a run and exits without unwinding into the test.
    let runner = match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Parent { child } => child,
        nix::unistd::ForkResult::Child => {
            let plan = build(vec![group("left", endless(Rhythm::Steady))]);
            let board = Board::create(&plan).unwrap();
            let pid = spawn(&board, 0, || {});
            let ready = board.wait_ready(LONG) == Wait::All;
            board.start();
            nix::unistd::write(&to, &pid.as_raw().to_ne_bytes()).unwrap();
            // SAFETY: as in the helper.
            unsafe { libc::_exit((!ready).into()) }
        }
    };
    let mut pid = [0; 4];
    nix::unistd::read(&from, &mut pid).unwrap();
    nix::sys::wait::waitpid(runner, None).unwrap();
    let stat = format!("/proc/{}/stat", i32::from_ne_bytes(pid));
    // gone, or a zombie that its new parent has not looked at yet
    let begin = std::time::Instant::now();
    while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
        if begin.elapsed() > LONG {
            kill(nix::unistd::Pid::from_raw(i32::from_ne_bytes(pid)), Signal::SIGKILL).unwrap();
            panic!("the task lived on");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_board_no_task() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(100_000).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
    let why = format!("{:#}", lollobrigida::actor::main(fd, 0).unwrap_err());
    assert!(why.contains("not a board"), "{why}");
    let why = format!("{:#}", lollobrigida::actor::main(1_000_000, 0).unwrap_err());
    assert!(why.contains("descriptor 1000000"), "{why}");
}
