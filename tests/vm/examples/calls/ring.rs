// SPDX-License-Identifier: GPL-2.0-only
//! The work of io_uring(7) for a task that computes, while requests complete: how long the task
//! does not get on, by the clock that it reads again and again, without a call. A timer expires
//! meanwhile, of which requests wait; what the timer alone takes is subtracted.
//!
//! A ring with IORING_SETUP_DEFER_TASKRUN leaves the task's part of the work to its next call: the
//! gap then has the interrupt's part only.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use io_uring::{IoUring, opcode, squeue, types};
use libc::timespec;

use crate::figures::{measure, now, row};

const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;
/// From the start of the timer to its expiry, and from then until the task looks: longer than the
/// task needs to begin to compute, and than the interrupt may be late.
const EXPIRES_NS: i64 = 50_000;
const LATE_NS: i64 = 20_000;
/// What a request reads that follows upon another.
const READ_BYTES: usize = 1 << 20;

/// What waits for the timer.
#[derive(Clone, Copy)]
enum Requests {
    Polls(usize),
    /// One, and a read of READ_BYTES once it has completed.
    PollThenRead,
}

pub fn print(times: usize) {
    the_clock_needs_no_call();
    let times = (times / 10).max(1); // a thousand requests take a million instructions
    println!("io_uring: {times} times each");
    let reading = measure(times, CLOCK, || ());
    let timer = gaps(times, Requests::Polls(0), false);
    row("io_uring", "timer alone", &reading, &timer);
    for (requests, deferred, what) in [
        (Requests::Polls(1), true, "1 poll, deferred"),
        (Requests::Polls(1), false, "1 poll"),
        (Requests::Polls(100), true, "100 polls, deferred"),
        (Requests::Polls(100), false, "100 polls"),
        (Requests::Polls(1000), true, "1000 polls, deferred"),
        (Requests::Polls(1000), false, "1000 polls"),
        (Requests::PollThenRead, true, "1 poll, read of 1 MiB, deferred"),
        (Requests::PollThenRead, false, "1 poll, read of 1 MiB"),
    ] {
        row("io_uring", what, &timer, &gaps(times, requests, deferred));
    }
}

/// The vDSO reads the TSC only where it is the kernel's clock.
fn the_clock_needs_no_call() {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let source = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    assert_eq!(source.trim(), "tsc", "{path}: a reading of this clock is a call: no gap is seen");
}

/// The longest gap around the timer's expiry, of each of `times` turns, ascending.
fn gaps(times: usize, requests: Requests, deferred: bool) -> Vec<i64> {
    // SAFETY: plain integers.
    let timer = unsafe { libc::timerfd_create(CLOCK, libc::TFD_NONBLOCK) };
    assert!(timer >= 0, "timerfd_create: {}", Error::last_os_error());
    // SAFETY: just opened, and of nothing else.
    let timer = unsafe { OwnedFd::from_raw_fd(timer) };
    let zero = std::fs::File::open("/dev/zero").expect("/dev/zero");
    let mut builder = IoUring::builder();
    if deferred {
        builder.setup_single_issuer().setup_defer_taskrun();
    }
    let mut ring: IoUring = builder
        .build(1024)
        .unwrap_or_else(|e| panic!("io_uring_setup: {e}; does this kernel have CONFIG_IO_URING?"));
    let mut read = vec![1_u8; READ_BYTES]; // not zero: its pages are there
    let poll = |flags| {
        opcode::PollAdd::new(types::Fd(timer.as_raw_fd()), libc::POLLIN as u32).build().flags(flags)
    };
    let entries: Vec<squeue::Entry> = match requests {
        Requests::Polls(n) => vec![poll(squeue::Flags::empty()); n],
        Requests::PollThenRead => {
            let bytes = READ_BYTES.try_into().expect("a length");
            let read = opcode::Read::new(types::Fd(zero.as_raw_fd()), read.as_mut_ptr(), bytes);
            vec![poll(squeue::Flags::IO_LINK), read.build()]
        }
    };

    let turn = |_| {
        // SAFETY: the descriptors and the buffer outlive the ring's work, for which each turn waits.
        unsafe { ring.submission().push_multiple(&entries) }.expect("room in the ring");
        if !entries.is_empty() {
            assert_eq!(ring.submit().expect("io_uring_enter"), entries.len());
        }
        assert_eq!(ring.completion().len(), 0, "complete before the timer has expired");
        let gap = gap(&timer);
        // Without a call since: what is complete is so by the work that the gap has.
        let expected = if deferred { 0 } else { entries.len() };
        assert_eq!(ring.completion().len(), expected, "completed while the task computes");
        if !entries.is_empty() {
            ring.submit_and_wait(entries.len()).expect("io_uring_enter");
        }
        let results: Vec<i32> = ring.completion().map(|done| done.result()).collect();
        assert_eq!(results.len(), entries.len(), "complete in the end");
        assert!(results.iter().all(|&result| result > 0), "requests failed: {results:?}");
        let mut expired = 0_u64;
        // SAFETY: room for the eight bytes.
        let bytes = unsafe { libc::read(timer.as_raw_fd(), (&raw mut expired).cast(), 8) };
        assert_eq!((bytes, expired), (8, 1), "the timer has expired once");
        gap
    };
    let mut all: Vec<i64> = (0..times + times / 10 + 1).map(turn).skip(times / 10 + 1).collect();
    all.sort_unstable();
    all
}

fn gap(timer: &OwnedFd) -> i64 {
    let expires = now(CLOCK) + EXPIRES_NS;
    let at = libc::itimerspec {
        it_interval: timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: timespec { tv_sec: expires / 1_000_000_000, tv_nsec: expires % 1_000_000_000 },
    };
    // SAFETY: a timer, and a valid itimerspec.
    let set = unsafe {
        let absolute = libc::TFD_TIMER_ABSTIME;
        libc::timerfd_settime(timer.as_raw_fd(), absolute, &raw const at, std::ptr::null_mut())
    };
    assert_eq!(set, 0, "timerfd_settime: {}", Error::last_os_error());
    let (mut last, mut longest) = (now(CLOCK), 0);
    assert!(last < expires, "the task began to compute after the timer had expired");
    while last < expires + LATE_NS {
        let read = now(CLOCK);
        longest = longest.max(read - last);
        last = read;
    }
    longest
}
