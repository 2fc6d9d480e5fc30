// SPDX-License-Identifier: GPL-2.0-only
//! sched_setattr(2) and sched_getattr(2), which the C library has since glibc 2.41 only.

use std::io;

use nix::libc;

use super::classes::facts::SCHED_FIFO;

/// Attributes of a policy that needs none.
pub fn attr(policy: u32) -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

/// The attributes of a thread that comes before all others but those of SCHED_DEADLINE.
pub fn highest() -> libc::sched_attr {
    libc::sched_attr {
        // threads that it makes are normal ones
        sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
        sched_priority: 99,
        ..attr(SCHED_FIFO)
    }
}

/// The attributes of a thread; `None`: it is gone. 0 is the calling one.
///
/// # Errors
/// The kernel's.
pub fn get(tid: i32) -> io::Result<Option<libc::sched_attr>> {
    let mut found = attr(0);
    // SAFETY: the kernel writes at most the size that is told, which is that of `found`.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut found, found.size, 0) };
    match io::Error::last_os_error() {
        _ if done == 0 => Ok(Some(found)),
        gone if is_gone(&gone) => Ok(None),
        error => Err(error),
    }
}

/// Sets all attributes of a thread. 0 is the calling one.
///
/// # Errors
/// The kernel's; ESRCH: it is gone.
pub fn set(tid: i32, attr: &libc::sched_attr) -> io::Result<()> {
    let attr = std::ptr::from_ref(attr);
    // SAFETY: the kernel reads as many bytes as attr.size says, which is that of its type.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, attr, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does the error mean that there is no such thread?
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}
