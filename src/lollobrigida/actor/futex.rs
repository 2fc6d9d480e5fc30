// SPDX-License-Identifier: GPL-2.0-only
//! futex(2) on words that processes share. Raw, because the measured part must make
//! exactly the calls it counts.

use std::io;
use std::sync::atomic::AtomicU32;

/// Why a wait came back. The word must be looked at again in any case but `Late`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Woken, or the word had changed before.
    Maybe,
    /// The time came.
    Late,
    /// A signal.
    Signal,
}

/// Sleeps while the word is `seen`, until `until_ns` of CLOCK_MONOTONIC. One system call.
pub(super) fn wait(word: &AtomicU32, seen: u32, until_ns: Option<u64>) -> Woken {
    let until = until_ns.map(timespec);
    let time = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time live during the call; the kernel only reads both.
    // FUTEX_WAIT_BITSET, because its time is absolute.
    let done = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT_BITSET,
            seen,
            time,
            std::ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    match (done, io::Error::last_os_error().raw_os_error()) {
        (-1, Some(libc::ETIMEDOUT)) => Woken::Late,
        (-1, Some(libc::EINTR)) => Woken::Signal,
        _ => Woken::Maybe,
    }
}

/// Wakes all that wait. One system call.
pub(super) fn wake(word: &AtomicU32) {
    // SAFETY: the kernel uses the word's address only to find its waiters.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Nanoseconds as the kernel wants them.
pub(super) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}
