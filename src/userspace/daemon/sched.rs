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

/// Gives a thread a policy without priority. The kernel takes the nice value that the thread has by then.
///
/// # Errors
/// The kernel's; ESRCH: it is gone.
pub fn set_normal(tid: i32, policy: u32, reset_on_fork: bool) -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    let flag = if reset_on_fork { libc::SCHED_RESET_ON_FORK } else { 0 };
    let policy = policy.cast_signed() | flag;
    // SAFETY: the kernel reads one such struct.
    let done = unsafe { libc::syscall(libc::SYS_sched_setscheduler, tid, policy, &raw const none) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does the error mean that there is no such thread?
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_thread_that_gets_a_policy_keeps_its_own_nice_value() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let tid = child.id().cast_signed();
        let has = || {
            let attr = get(tid).expect("readable").expect("there");
            (attr.sched_policy, attr.sched_nice, attr.sched_flags)
        };
        let other = libc::SCHED_OTHER.cast_unsigned();
        set(tid, &libc::sched_attr { sched_nice: 19, ..attr(other) }).expect("set");
        for (policy, resets) in [(libc::SCHED_BATCH.cast_unsigned(), false), (other, true)] {
            set_normal(tid, policy, resets).expect("set");
            assert_eq!(has(), (policy, 19, u64::from(resets)), "SCHED_FLAG_RESET_ON_FORK is 1");
        }
        child.kill().and_then(|()| child.wait()).expect("killed");
    }
}
