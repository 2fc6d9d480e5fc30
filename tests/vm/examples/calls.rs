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
//! A second table has doors that scx_artis does not watch (docs/doors.md): exceptions, up to
//! the first instruction of the handler of the signal that the kernel makes of each, and how
//! long FUTEX_WAKE_BITSET holds the lock of a bucket in which many wait, of which it wakes none.

use std::arch::asm;
use std::io::Error;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

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

/// A clock, in ns.
fn now(clock: libc::clockid_t) -> i64 {
    let mut t = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a valid timespec.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Time of `times` runs, ascending, after some to warm up.
fn measure(times: usize, clock: libc::clockid_t, mut run: impl FnMut()) -> Vec<i64> {
    let mut all: Vec<i64> = (0..times + times / 10 + 1)
        .map(|_| {
            let began = now(clock);
            run();
            now(clock) - began
        })
        .collect();
    all.drain(..=times / 10);
    all.sort_unstable();
    all
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
        harmless("sched_yield, nobody waits", libc::SYS_sched_yield, [0; 4]),
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
    doors(times);
}

fn head(class: &str, what: &str) {
    println!("{class:<9} {what:<31} {:>8} {:>8} {:>8} {:>8}", "min", "median", "99 %", "max");
}

/// `nothing`: the same without what is measured.
fn row(class: &str, what: &str, nothing: &[i64], all: &[i64]) {
    let at = |i: usize| all[i.min(all.len() - 1)] - nothing[nothing.len() / 2];
    let (median, p99) = (at(all.len() / 2), at(all.len() * 99 / 100));
    println!("{class:<9} {what:<31} {:>8} {median:>8} {p99:>8} {:>8}", at(0), at(all.len()));
}

/// When a handler began.
static HANDLED_NS: AtomicI64 = AtomicI64::new(0);
/// Bytes of the instruction that it has to skip.
static SKIP: AtomicI64 = AtomicI64::new(0);
/// Many wait for it to change.
static WORD: AtomicU32 = AtomicU32::new(0);

extern "C" fn handle(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    HANDLED_NS.store(now(libc::CLOCK_MONOTONIC), Ordering::Relaxed);
    // SAFETY: the third argument of a handler with SA_SIGINFO is the context that it goes back to.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    registers[libc::REG_RIP as usize] += SKIP.load(Ordering::Relaxed);
}

fn doors(times: usize) {
    const WAITERS: usize = 1000;
    // SAFETY: all zero is a valid sigaction, and the handler makes no call that may not be made in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        for signal in [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSEGV] {
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }
    let nothing = measure(times, libc::CLOCK_MONOTONIC, || ());
    head("door", "");
    // SAFETY: each raises one exception, whose handler skips what the kernel would run again.
    let exceptions: [(&str, i64, fn()); 5] = [
        ("#UD, ud2", 2, || unsafe { asm!("ud2") }),
        ("#BP, int3", 0, || unsafe { asm!("int3") }),
        ("#DB, int1", 0, || unsafe { asm!(".byte 0xf1") }),
        ("#GP, hlt", 1, || unsafe { asm!("hlt") }),
        ("#DE, div by 0", 2, || unsafe {
            asm!("div ecx", in("ecx") 0, inout("eax") 1 => _, inout("edx") 0 => _);
        }),
    ];
    for (what, skip, raise) in exceptions {
        SKIP.store(skip, Ordering::Relaxed);
        let mut all: Vec<i64> = (0..times)
            .map(|_| {
                let began = now(libc::CLOCK_MONOTONIC);
                raise();
                HANDLED_NS.load(Ordering::Relaxed) - began
            })
            .collect();
        all.sort_unstable();
        row("exception", what, &nothing, &all);
    }

    let call = || {
        // SAFETY: the word lives as long as the program; FUTEX_WAKE_BITSET, private, of bit 1.
        unsafe { libc::syscall(libc::SYS_futex, WORD.as_ptr(), 0x8a, WAITERS, 0, 0, 2u32) };
    };
    row("futex", "wake of none, none wait", &nothing, &measure(times, libc::CLOCK_MONOTONIC, call));
    for _ in 0..WAITERS {
        let wait = || {
            // SAFETY: as above; FUTEX_WAIT_BITSET, private, of bit 0.
            unsafe { libc::syscall(libc::SYS_futex, WORD.as_ptr(), 0x89, 0, 0, 0, 1u32) };
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(wait).expect("a thread");
    }
    std::thread::sleep(std::time::Duration::from_secs(2)); // until they wait
    row("futex", "wake of none, 1000 wait", &nothing, &measure(times, libc::CLOCK_MONOTONIC, call));
}
