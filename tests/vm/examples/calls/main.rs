// SPDX-License-Identifier: GPL-2.0-only
//! The bound of each system call of the classes harmless and sleeping, as far as
//! measuring can tell: `calls TIMES` prints a table. Run by `scripts/bench calls` in a
//! guest with one CPU where a nanosecond of virtual time is one instruction.
//!
//! Calls that do not sleep are timed by the monotonic clock, read without a call: what
//! an interrupt took is in the maximum. The others are timed by the thread's own CPU
//! time: the sleep itself, the idle CPU and interrupts are not in it; the way to sleep
//! and back is. What two readings cost without a call between them is subtracted.
//!
//! A second table has page faults, without and with the hooks that could watch them (`faults`).
//!
//! A third table has doors that scx_artis does not watch (docs/doors.md), see `doors`.
//! `calls TIMES NAME` prints those of its rows that want a process of their own, `calls TIMES
//! interrupts` those that want a guest with two CPUs.

mod alone;
mod doors;
mod faults;
mod figures;
mod other;
mod ring;

use std::io::Error;

use figures::{head, measure, row};
use libc::{c_long, epoll_event, pollfd, timespec};

/// Arguments of a system call; addresses are of things that live as long as the call.
type CallArgs = [usize; 4];

/// One row of the table.
struct Case {
    class: &'static str,
    what: &'static str,
    call: c_long,
    args: CallArgs,
}

const fn case(class: &'static str, what: &'static str, call: c_long, args: CallArgs) -> Case {
    Case { class, what, call, args }
}

fn raw(call: c_long, args: CallArgs) -> c_long {
    // SAFETY: the table below has only calls that write, if at all, into buffers of
    // sufficient size whose addresses it passes, and these outlive it.
    unsafe { libc::syscall(call, args[0], args[1], args[2], args[3]) }
}

fn addr<T>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}

/// An empty pipe's end to read from, which is never ready.
fn quiet_fd() -> i32 {
    let mut ends = [0; 2];
    // SAFETY: room for the two descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "pipe: {}", Error::last_os_error());
    ends[0]
}

fn main() {
    let times = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(2000);
    if let Some(what) = std::env::args().nth(2) {
        return match what.as_str() {
            other::NAME => other::print(times),
            _ => alone::print(&what, times),
        };
    }
    // SAFETY: plain integers; timers then expire when they are asked to.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };

    let mut out = [0_u64; 16]; // the kernel writes into it
    let word = 0_u32;
    let (ns1, us100) =
        (timespec { tv_sec: 0, tv_nsec: 1 }, timespec { tv_sec: 0, tv_nsec: 100_000 });
    let zero = timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [pollfd { fd: quiet_fd(), events: libc::POLLIN, revents: 0 }; 64];
    let set = 1_u64 << (libc::SIGUSR1 - 1); // not pending
    // SAFETY: plain integers.
    let epoll = unsafe { libc::epoll_create1(0) };
    let mut event = epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
    // SAFETY: both descriptors are open, event is valid.
    unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fds[0].fd, &raw mut event) };

    let o = (&raw mut out).addr();
    let pollfds = (&raw mut fds).addr();
    let epoll = usize::try_from(epoll).expect("an epoll descriptor");
    let clock = |id: libc::clockid_t| usize::try_from(id).expect("a clock");
    let (wait, bitset) = (0x80, 0x89); // FUTEX_WAIT, FUTEX_WAIT_BITSET, private
    let harmless = |what, call, args| case("harmless", what, call, args);
    let sleeping = |what, call, args| case("sleeping", what, call, args);
    let table = [
        harmless("getpid", libc::SYS_getpid, [0; 4]),
        harmless("gettid", libc::SYS_gettid, [0; 4]),
        harmless("getppid", libc::SYS_getppid, [0; 4]),
        harmless("getpgrp", libc::SYS_getpgrp, [0; 4]),
        harmless("getuid", libc::SYS_getuid, [0; 4]),
        harmless("geteuid", libc::SYS_geteuid, [0; 4]),
        harmless("getgid", libc::SYS_getgid, [0; 4]),
        harmless("getegid", libc::SYS_getegid, [0; 4]),
        harmless("getcpu", libc::SYS_getcpu, [o, o + 8, 0, 0]),
        harmless("time", libc::SYS_time, [o, 0, 0, 0]),
        harmless("gettimeofday", libc::SYS_gettimeofday, [o, 0, 0, 0]),
        harmless(
            "clock_gettime realtime",
            libc::SYS_clock_gettime,
            [clock(libc::CLOCK_REALTIME), o, 0, 0],
        ),
        harmless(
            "clock_gettime monotonic",
            libc::SYS_clock_gettime,
            [clock(libc::CLOCK_MONOTONIC), o, 0, 0],
        ),
        harmless(
            "clock_getres monotonic",
            libc::SYS_clock_getres,
            [clock(libc::CLOCK_MONOTONIC), o, 0, 0],
        ),
        harmless("sched_yield, no other task", libc::SYS_sched_yield, [0; 4]),
        sleeping("nanosleep 1 ns", libc::SYS_nanosleep, [addr(&ns1), 0, 0, 0]),
        sleeping("nanosleep 100 us", libc::SYS_nanosleep, [addr(&us100), 0, 0, 0]),
        sleeping(
            "clock_nanosleep 1 ns",
            libc::SYS_clock_nanosleep,
            [clock(libc::CLOCK_MONOTONIC), 0, addr(&ns1), 0],
        ),
        sleeping(
            "clock_nanosleep 100 us",
            libc::SYS_clock_nanosleep,
            [clock(libc::CLOCK_MONOTONIC), 0, addr(&us100), 0],
        ),
        sleeping("rt_sigtimedwait 0", libc::SYS_rt_sigtimedwait, [addr(&set), 0, addr(&zero), 8]),
        sleeping(
            "rt_sigtimedwait 100 us",
            libc::SYS_rt_sigtimedwait,
            [addr(&set), 0, addr(&us100), 8],
        ),
        sleeping("epoll_wait 0, empty", libc::SYS_epoll_wait, [epoll, o, 8, 0]),
        sleeping("epoll_wait 1 ms, empty", libc::SYS_epoll_wait, [epoll, o, 8, 1]),
        sleeping("futex wait, other value", libc::SYS_futex, [addr(&word), wait, 1, addr(&us100)]),
        sleeping("futex wait 1 ns", libc::SYS_futex, [addr(&word), wait, 0, addr(&ns1)]),
        sleeping("futex wait 100 us", libc::SYS_futex, [addr(&word), wait, 0, addr(&us100)]),
        sleeping("futex wait_bitset, other value", libc::SYS_futex, [addr(&word), bitset, 1, 0]),
        sleeping("poll 0 fds, 0", libc::SYS_poll, [0, 0, 0, 0]),
        sleeping("poll 0 fds, 1 ms", libc::SYS_poll, [0, 0, 1, 0]),
        sleeping("poll 1 fd, 0", libc::SYS_poll, [pollfds, 1, 0, 0]),
        sleeping("poll 1 fd, 1 ms", libc::SYS_poll, [pollfds, 1, 1, 0]),
        sleeping("poll 4 fds, 0", libc::SYS_poll, [pollfds, 4, 0, 0]),
        sleeping("poll 16 fds, 0", libc::SYS_poll, [pollfds, 16, 0, 0]),
        sleeping("poll 16 fds, 1 ms", libc::SYS_poll, [pollfds, 16, 1, 0]),
        sleeping("ppoll 16 fds, 0", libc::SYS_ppoll, [pollfds, 16, addr(&zero), 0]),
        case("(none)", "poll 64 fds, 0", libc::SYS_poll, [pollfds, 64, 0, 0]),
        case("(none)", "getsid", libc::SYS_getsid, [0; 4]),
        case("(none)", "getrusage", libc::SYS_getrusage, [0, o, 0, 0]),
        case(
            "(none)",
            "clock_gettime process CPU",
            libc::SYS_clock_gettime,
            [clock(libc::CLOCK_PROCESS_CPUTIME_ID), o, 0, 0],
        ),
    ];

    println!("instructions of {times} calls each, one thread");
    head("class", "call");
    for Case { class, what, call, args } in &table {
        let clock = match *class {
            "sleeping" => libc::CLOCK_THREAD_CPUTIME_ID,
            _ => libc::CLOCK_MONOTONIC,
        };
        row(
            class,
            what,
            &measure(times, clock, || ()),
            &measure(times, clock, || {
                raw(*call, *args);
            }),
        );
    }
    println!("pause, rt_sigsuspend: not measured, only a signal ends them");
    faults::print(times);
    doors::print(times);
}
