// SPDX-License-Identifier: GPL-2.0-only
//! Doors that scx_artis does not watch: exceptions, up to the first instruction of the handler of
//! the signal that the kernel makes of each; the work of io_uring(7) in a task that computes;
//! seccomp filters and rseq(2), in processes of their own, since neither can be undone; split
//! locks; and how long FUTEX_WAKE_BITSET holds the lock of a bucket in which many wait, of which
//! it wakes none.

use std::arch::asm;
use std::process::Command;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use crate::figures::{head, measure, now, row};
use crate::{alone, ring};

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

/// What lets `handle` be called for the exceptions below.
pub fn handle_exceptions() {
    // SAFETY: all zero is a valid sigaction, and the handler makes no call that may not be made in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        for signal in [libc::SIGILL, libc::SIGTRAP, libc::SIGFPE, libc::SIGSEGV] {
            assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0);
        }
    }
}

/// Time from before `raise` to the handler, ascending; the handler goes on `skip` bytes after the
/// address that the kernel tells it.
pub fn until_handled(times: usize, skip: i64, mut raise: impl FnMut()) -> Vec<i64> {
    SKIP.store(skip, Ordering::Relaxed);
    let mut all: Vec<i64> = (0..times)
        .map(|_| {
            let began = now(libc::CLOCK_MONOTONIC);
            raise();
            HANDLED_NS.load(Ordering::Relaxed) - began
        })
        .collect();
    all.sort_unstable();
    all
}

/// An instruction without operands that always raises #UD.
pub fn undefined() {
    // SAFETY: the handler skips it.
    unsafe { asm!("ud2") }
}
/// Bytes of it.
pub const UNDEFINED_BYTES: i64 = 2;

pub fn print(times: usize) {
    let nothing = measure(times, libc::CLOCK_MONOTONIC, || ());
    head("door", "");
    handle_exceptions();
    // SAFETY: each raises one exception; its handler skips what the kernel would run again.
    let exceptions: [(&str, i64, fn()); 5] = [
        ("#UD, ud2", UNDEFINED_BYTES, undefined),
        ("#BP, int3", 0, || unsafe { asm!("int3") }),
        ("#DB, int1", 0, || unsafe { asm!(".byte 0xf1") }),
        ("#GP, hlt", 1, || unsafe { asm!("hlt") }),
        ("#DE, div by 0", 2, || unsafe {
            asm!("div ecx", in("ecx") 0, inout("eax") 1 => _, inout("edx") 0 => _);
        }),
    ];
    for (what, skip, raise) in exceptions {
        row("exception", what, &nothing, &until_handled(times, skip, raise));
    }
    ring::print(times);
    alone::ALL.iter().for_each(|what| apart(what, times));
    split_lock(times);
    futex(times, &nothing);
}

/// Runs this program once more for the rows `what`.
fn apart(what: &str, times: usize) {
    let own = std::env::current_exe().expect("the path of this program");
    let status = Command::new(own)
        .args([&times.to_string(), what])
        .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0") // see `alone`
        .status()
        .expect("this program, run once more");
    assert!(status.success(), "{what}: not measured, {status}; see above");
}

/// On a CPU that detects it, by #AC, the kernel makes the task sleep.
fn split_lock(times: usize) {
    #[repr(align(64))]
    struct Lines([u8; 128]);
    let mut lines = Lines([0; 128]);
    let word = lines.0[62..].as_mut_ptr();
    let all = measure(times, libc::CLOCK_THREAD_CPUTIME_ID, || {
        // SAFETY: four bytes within `lines`, of which two are in each cache line.
        unsafe { asm!("lock inc dword ptr [{}]", in(reg) word) };
    });
    let nothing = measure(times, libc::CLOCK_THREAD_CPUTIME_ID, || ());
    row("split", "lock inc across two lines", &nothing, &all);
    let cpu = std::fs::read_to_string("/proc/cpuinfo").expect("/proc/cpuinfo");
    let flags = cpu.lines().find(|line| line.starts_with("flags")).expect("flags of a CPU");
    for flag in ["hypervisor", "split_lock_detect", "bus_lock_detect"] {
        let has = if flags.split_whitespace().any(|f| f == flag) { "has" } else { "does not have" };
        println!("split: this CPU {has} the flag {flag}");
    }
}

fn futex(times: usize, nothing: &[i64]) {
    const WAITERS: usize = 1000;
    let call = || {
        // SAFETY: the word lives as long as the program; FUTEX_WAKE_BITSET, private, of bit 1.
        unsafe { libc::syscall(libc::SYS_futex, WORD.as_ptr(), 0x8a, WAITERS, 0, 0, 2u32) };
    };
    row("futex", "wake of none, none wait", nothing, &measure(times, libc::CLOCK_MONOTONIC, call));
    for _ in 0..WAITERS {
        let wait = || {
            // SAFETY: as above; FUTEX_WAIT_BITSET, private, of bit 0.
            unsafe { libc::syscall(libc::SYS_futex, WORD.as_ptr(), 0x89, 0, 0, 0, 1u32) };
        };
        std::thread::Builder::new().stack_size(64 << 10).spawn(wait).expect("a thread");
    }
    std::thread::sleep(std::time::Duration::from_secs(2)); // until they wait
    row("futex", "wake of none, 1000 wait", nothing, &measure(times, libc::CLOCK_MONOTONIC, call));
}
