// SPDX-License-Identifier: GPL-2.0-only
//! Interrupts that a thread on another CPU makes the kernel send, in a guest with two CPUs. Its
//! virtual time counts the instructions of both CPUs, which take turns: the sender's until it
//! waits for the answer cannot be told from those of the interrupt. What is measured is from
//! before the sender's call to the first reading of the clock by the thread that computes on the
//! other CPU: a bound of the interrupt, not its length.

use std::hint::spin_loop;
use std::io::Error;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Barrier};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use crate::figures::{head, measure, now, row};

/// The argument that asks for these rows.
pub const NAME: &str = "interrupts";

const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
pub const PAGE: usize = 4096;
/// More than tlb_single_page_flush_ceiling: the whole TLB is flushed.
const PAGES: usize = 64;

const MUNMAPS: [(usize, &str); 2] = [(1, "munmap, 1 page"), (PAGES, "munmap, 64 pages")];

/// When the sender began its call; LAST: there is none any more.
static BEGAN_NS: AtomicI64 = AtomicI64::new(0);
/// The last of these that the computing thread has seen, and how long after it.
static SEEN_NS: AtomicI64 = AtomicI64::new(0);
static AFTER_NS: AtomicI64 = AtomicI64::new(0);
const LAST: i64 = i64::MAX;

pub fn print(times: usize) {
    let expedited = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    let register = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    head("door", "");
    // SAFETY: plain integers.
    let registered = unsafe { libc::syscall(libc::SYS_membarrier, register, 0, 0) };
    assert_eq!(registered, 0, "membarrier: {}", Error::last_os_error());
    // the sender's own part, by its own clock: no other CPU has the process's memory yet
    let reading = measure(times, CLOCK, || ());
    for (pages, what) in MUNMAPS {
        let turn = |_| {
            let (at, began) = (map(pages, libc::MAP_POPULATE), now(CLOCK));
            unmap(at, pages);
            now(CLOCK) - began
        };
        let mut all: Vec<i64> = (0..times).map(turn).collect();
        all.sort_unstable();
        row("sender", what, &reading, &all);
    }
    // it sleeps until the other thread is away: of two FIFO tasks of one CPU, one waits for ever
    let away = Arc::new(Barrier::new(2));
    let there = Arc::clone(&away);
    let computing = std::thread::spawn(move || compute(&there));
    run_on(0);
    away.wait();
    // it leaves the turn to the other CPU, as the kernel does where it waits for an answer
    let nothing = sent(times, || 0, |_| spin_loop());
    row("interrupt", "none", &[0], &nothing);
    let call = |_| {
        // SAFETY: plain integers.
        let done = unsafe { libc::syscall(libc::SYS_membarrier, expedited, 0, 0) };
        assert_eq!(done, 0, "membarrier: {}", Error::last_os_error());
    };
    let all = interrupted("CAL", times, || sent(times, || 0, call));
    row("interrupt", "membarrier, private expedited", &nothing, &all);
    for (pages, what) in MUNMAPS {
        let sent = || sent(times, || map(pages, libc::MAP_POPULATE), |at| unmap(at, pages));
        row("interrupt", what, &nothing, &interrupted("TLB", times, sent));
    }
    BEGAN_NS.store(LAST, Ordering::SeqCst);
    computing.join().expect("the computing thread");
}

/// What `run` returns, in which CPU 1 has had an interrupt of this kind for each of `times` calls.
fn interrupted(kind: &str, times: usize, run: impl FnOnce() -> Vec<i64>) -> Vec<i64> {
    let count = || -> usize {
        let all = std::fs::read_to_string("/proc/interrupts").expect("/proc/interrupts");
        let line =
            all.lines().find_map(|line| line.trim_start().strip_prefix(kind)?.strip_prefix(':'));
        let cpu1 = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        cpu1.unwrap_or_else(|| panic!("/proc/interrupts: no {kind} of a CPU 1"))
    };
    let before = count();
    let all = run();
    let had = count() - before;
    assert!(
        had >= times,
        "{had} interrupts {kind} on CPU 1 by {times} calls: it was not interrupted"
    );
    all
}

fn run_on(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).expect("a CPU");
    let error = "this measurement wants CPUs 0 and 1";
    sched_setaffinity(Pid::from_raw(0), &set).expect(error);
}

/// Looks for new calls of the sender, and at the clock after each.
fn compute(there: &Barrier) {
    run_on(1);
    there.wait();
    let mut seen = 0;
    loop {
        let began = BEGAN_NS.load(Ordering::SeqCst);
        if began == LAST {
            return;
        }
        if began != seen {
            AFTER_NS.store(now(CLOCK) - began, Ordering::SeqCst);
            SEEN_NS.store(began, Ordering::SeqCst);
            seen = began;
        }
    }
}

/// What the computing thread saw of `times` calls, ascending.
fn sent(times: usize, prepare: impl Fn() -> usize, call: impl Fn(usize)) -> Vec<i64> {
    let turn = |_| {
        let with = prepare();
        let began = now(CLOCK);
        BEGAN_NS.store(began, Ordering::SeqCst);
        call(with);
        while SEEN_NS.load(Ordering::SeqCst) != began {
            spin_loop();
        }
        AFTER_NS.load(Ordering::SeqCst)
    };
    let mut all: Vec<i64> = (0..times + times / 10 + 1).map(turn).skip(times / 10 + 1).collect();
    all.sort_unstable();
    all
}

/// The address of new pages; with MAP_POPULATE as `more`, they are in the page table.
pub fn map(pages: usize, more: libc::c_int) -> usize {
    let (access, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
    let flags = private | libc::MAP_ANONYMOUS | more;
    // SAFETY: new memory, where there is none.
    let at = unsafe { libc::mmap(null_mut(), pages * PAGE, access, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED, "mmap: {}", Error::last_os_error());
    at.addr()
}

pub fn unmap(at: usize, pages: usize) {
    // SAFETY: from `map`, and of no other use.
    let done = unsafe { libc::munmap(at as *mut libc::c_void, pages * PAGE) };
    assert_eq!(done, 0, "munmap: {}", Error::last_os_error());
}
