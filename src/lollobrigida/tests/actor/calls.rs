// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's view of the measured part: exactly the scene's own system calls, counted
//! by ptrace(2).

use std::collections::BTreeMap;

use crate::help::*;
use lollobrigida::actor::board::{Board, State, Wait};
use lollobrigida::actor::report::Report;
use lollobrigida::plan::Plan;
use lollobrigida::scene::{Amount, CallKind, Group, Rhythm};
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

const TURNS: u32 = 130;

/// What ptrace(2) saw of one task.
#[derive(Default)]
struct Seen {
    /// Calls between start and end, by number.
    measured: BTreeMap<i64, u64>,
    /// Calls from the end to the wait for the release.
    after: u64,
}

fn trace_me() {
    // SAFETY: no memory involved.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
    raise(Signal::SIGSTOP).unwrap();
}

fn ptrace(request: libc::c_uint, pid: Pid, data: usize) {
    // SAFETY: no memory of ours involved.
    let done = unsafe { libc::ptrace(request, pid.as_raw(), 0, data) };
    assert_eq!(done, 0, "ptrace: {}", std::io::Error::last_os_error());
}

/// The number and second argument of the call that a stopped task enters; `None` if it
/// leaves one.
fn entered(pid: Pid) -> Option<(i64, u64)> {
    let mut info = std::mem::MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    // SAFETY: the kernel writes at most so many bytes; all bits are valid for the struct,
    // and the field of the union is the one that `op` names.
    unsafe {
        let bytes = size_of::<libc::ptrace_syscall_info>();
        libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid.as_raw(), bytes, info.as_mut_ptr());
        let info = info.assume_init();
        (info.op == libc::PTRACE_SYSCALL_INFO_ENTRY)
            .then(|| (info.u.entry.nr as i64, info.u.entry.args[1]))
    }
}

/// Runs a plan and traces one of its tasks.
fn traced(plan: &Plan, task: usize) -> (Seen, Report) {
    let board = Board::create(plan).unwrap();
    let others = (0..plan.tasks.len()).filter(|i| *i != task);
    let mut children = Children(others.map(|i| spawn(&board, i, || {})).collect());
    let pid = spawn(&board, task, trace_me);
    children.0.push(pid);
    waitpid(pid, Some(WaitPidFlag::WSTOPPED)).unwrap();
    ptrace(
        libc::PTRACE_SETOPTIONS,
        pid,
        (libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL) as usize,
    );
    let mut seen = Seen::default();
    let (mut started, mut released) = (false, false);
    let mut signal = 0;
    loop {
        ptrace(libc::PTRACE_SYSCALL, pid, signal);
        signal = 0;
        match waitpid(pid, None).unwrap() {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Stopped(_, got) => {
                signal = got as usize;
                continue;
            }
            WaitStatus::Exited(..) => break,
            other => panic!("{other:?}"),
        }
        let Some((nr, operation)) = entered(pid) else { continue };
        match board.state(task) {
            State::Ready if !started && nr == libc::SYS_futex => {
                // with several tasks the first of its calls may be the wake-up of the runner
                started = board.wait_ready(LONG) == Wait::All;
                board.start();
            }
            State::Running => *seen.measured.entry(nr).or_default() += 1,
            State::Done if !released => {
                seen.after += 1;
                if nr == libc::SYS_futex && operation == libc::FUTEX_WAIT_BITSET as u64 {
                    assert_eq!(board.wait_done(Some(LONG)), Wait::All);
                    board.release();
                    released = true;
                }
            }
            _ => {}
        }
    }
    assert!(started && released);
    (seen, board.report(task).unwrap())
}

fn one(phase: lollobrigida::scene::Phase) -> Plan {
    build(vec![Group { memory_kb: 64, ..group("one", phase) }])
}

#[test]
fn a_computing_task_makes_no_system_call_at_all() {
    let (seen, report) = traced(&one(phase(200.0, Rhythm::Steady)), 0);
    assert_eq!(seen.measured, BTreeMap::new());
    assert_eq!(report.calls.total(), 0);
    assert_eq!(seen.after, report.calls_after_end);
    assert_eq!(report.calls_after_end, 2, "one wake-up, one wait");
}

#[test]
fn sleeps_are_the_only_calls_of_a_sleeping_task() {
    let sleep = Rhythm::Sleep { every: Amount::Loops(1.0), sleep_us: 100 };
    let (seen, report) = traced(&one(phase(20.0, sleep)), 0);
    assert_eq!(seen.measured, BTreeMap::from([(libc::SYS_clock_nanosleep, 19)]));
    assert_eq!(report.calls.total(), 19);
}

#[test]
fn items_cost_a_wait_or_a_wake_up_at_most() {
    let makes =
        group("makes", phase(20.0, Rhythm::Sleep { every: Amount::Loops(1.0), sleep_us: 50 }));
    let items = Rhythm::Items { burst: Amount::Loops(1.0) };
    let takes = Group { follows: vec!["makes".into()], ..group("takes", endless(items)) };
    let (seen, report) = traced(&build(vec![makes, takes]), 1);
    assert_eq!(seen.measured.values().sum::<u64>(), report.calls.total());
    assert!(seen.measured.keys().all(|nr| *nr == libc::SYS_futex), "{:?}", seen.measured);
    assert_eq!(report.items_taken, 20);
}

#[test]
fn each_kind_makes_exactly_its_calls() {
    let turns = u64::from(TURNS);
    for (name, kind) in CallKind::ALL {
        let each: &[i64] = match kind {
            CallKind::Getppid => &[libc::SYS_getppid],
            CallKind::Yield => &[libc::SYS_sched_yield],
            CallKind::Sysinfo => &[libc::SYS_sysinfo],
            CallKind::Stat => &[libc::SYS_newfstatat],
            CallKind::Open => &[libc::SYS_openat, libc::SYS_close],
            CallKind::Pipe => &[libc::SYS_write, libc::SYS_read],
            CallKind::Socket => &[libc::SYS_sendto, libc::SYS_recvfrom],
            CallKind::Mmap => &[libc::SYS_mmap, libc::SYS_munmap],
            CallKind::Mprotect => &[libc::SYS_mprotect],
            CallKind::Fault => &[libc::SYS_madvise],
            CallKind::Lock => &[libc::SYS_pwrite64],
            CallKind::Fork => &[libc::SYS_clone, libc::SYS_wait4],
        };
        let times = match kind {
            CallKind::Mprotect => 2 * turns,
            // one page was touched in the rehearsal; 64 are made absent at a time
            CallKind::Fault => turns / 64,
            _ => turns,
        };
        let (seen, report) = traced(&one(calling(kind, TURNS)), 0);
        assert_eq!(report.failed, None, "{name}");
        assert_eq!(seen.measured, each.iter().map(|nr| (*nr, times)).collect(), "{name}");
        assert_eq!(report.calls.scene, times * each.len() as u64, "{name}");
        assert_eq!(report.faults, if kind == CallKind::Fault { turns } else { 0 }, "{name}");
    }
}
