// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling policies, by sched_setattr(2), which nix lacks and glibc has since 2.41 only.

use std::io;

use nix::unistd::Pid;

use crate::scene::Sched;

/// include/uapi/linux/sched.h; libc lacks it.
const SCHED_EXT: i32 = 7;

/// Is it one of the real-time policies?
#[must_use]
pub fn is_rt(sched: &Sched) -> bool {
    matches!(sched, Sched::Fifo { .. } | Sched::Rr { .. } | Sched::Deadline { .. })
}

/// Gives a task its policy.
///
/// # Errors
/// The kernel's, see [`why`].
pub fn set(pid: Pid, sched: &Sched) -> io::Result<()> {
    set_attr(pid, &attr(sched))
}

/// The policy of a task, to be put back with [`set_attr`].
///
/// # Errors
/// The kernel's.
pub fn get_attr(pid: Pid) -> io::Result<libc::sched_attr> {
    let mut found = attr(&Sched::Idle);
    // SAFETY: the kernel writes at most the size that is told, which is that of `found`.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_getattr, pid.as_raw(), &raw mut found, found.size, 0)
    };
    if done == 0 { Ok(found) } else { Err(io::Error::last_os_error()) }
}

/// Sets all that [`get_attr`] gave.
///
/// # Errors
/// The kernel's.
pub fn set_attr(pid: Pid, attr: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as attr.size says, which is that of its type.
    let done = unsafe {
        libc::syscall(libc::SYS_sched_setattr, pid.as_raw(), std::ptr::from_ref(attr), 0)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn attr(sched: &Sched) -> libc::sched_attr {
    let (policy, nice, priority) = match *sched {
        Sched::Normal { nice } => (libc::SCHED_NORMAL, nice, 0),
        Sched::Batch { nice } => (libc::SCHED_BATCH, nice, 0),
        Sched::Idle => (libc::SCHED_IDLE, 0, 0),
        Sched::Ext { nice } => (SCHED_EXT, nice, 0),
        Sched::Fifo { priority } => (libc::SCHED_FIFO, 0, priority),
        Sched::Rr { priority } => (libc::SCHED_RR, 0, priority),
        Sched::Deadline { .. } => (libc::SCHED_DEADLINE, 0, 0),
    };
    let (flags, runtime_us, deadline_us, period_us) = match *sched {
        // its child is a normal one; without the flag it could not fork at all
        Sched::Deadline { runtime_us, deadline_us, period_us } => {
            (libc::SCHED_FLAG_RESET_ON_FORK as u64, runtime_us, deadline_us, period_us)
        }
        _ => (0, 0, 0, 0),
    };
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy.cast_unsigned(),
        sched_flags: flags,
        sched_nice: nice,
        sched_priority: priority,
        sched_runtime: runtime_us * 1000,
        sched_deadline: deadline_us * 1000,
        sched_period: period_us * 1000,
    }
}

/// In words, for a group of tasks: what was not set, why, and what would make it possible.
#[must_use]
pub fn why(group: &str, sched: &Sched, err: &io::Error) -> String {
    let what = name(sched);
    let cause = match (err.raw_os_error(), sched) {
        (Some(libc::EPERM), Sched::Deadline { .. }) => {
            "needs CAP_SYS_NICE and tasks that may run on every CPU (no `cpus`), and cannot be in \
             a cgroup of a kernel with CONFIG_RT_GROUP_SCHED: run as root"
        }
        (Some(libc::EPERM), Sched::Fifo { .. } | Sched::Rr { .. }) => {
            "needs CAP_SYS_NICE or a limit that allows it (ulimit -r), and outside of the root \
             cgroup a kernel without CONFIG_RT_GROUP_SCHED: run as root"
        }
        (Some(libc::EPERM | libc::EACCES), _) => {
            "needs CAP_SYS_NICE or a limit that allows it (ulimit -e): run as root"
        }
        (Some(libc::EBUSY), _) => {
            "is more than the kernel admits beside the other DEADLINE tasks: ask for less runtime"
        }
        (Some(libc::EINVAL), Sched::Ext { .. }) => "needs a kernel with CONFIG_SCHED_CLASS_EXT",
        _ => "was refused by the kernel",
    };
    format!("group `{group}`: {what} {cause} ({err}); its tasks run with the runner's own policy")
}

fn name(sched: &Sched) -> String {
    match sched {
        Sched::Normal { nice } => format!("SCHED_OTHER with nice {nice}"),
        Sched::Batch { nice } => format!("SCHED_BATCH with nice {nice}"),
        Sched::Idle => "SCHED_IDLE".into(),
        Sched::Ext { nice } => format!("SCHED_EXT with nice {nice}"),
        Sched::Fifo { priority } => format!("SCHED_FIFO {priority}"),
        Sched::Rr { priority } => format!("SCHED_RR {priority}"),
        Sched::Deadline { runtime_us, period_us, .. } => {
            format!("SCHED_DEADLINE {runtime_us}/{period_us} µs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_its_own_fields() {
        let of = |sched| {
            let a = attr(&sched);
            (a.sched_policy, a.sched_nice, a.sched_priority, a.sched_runtime)
        };
        assert_eq!(of(Sched::Normal { nice: -5 }), (0, -5, 0, 0));
        assert_eq!(of(Sched::Fifo { priority: 50 }), (1, 0, 50, 0));
        assert_eq!(of(Sched::Rr { priority: 3 }), (2, 0, 3, 0));
        assert_eq!(of(Sched::Batch { nice: 2 }), (3, 2, 0, 0));
        assert_eq!(of(Sched::Idle), (5, 0, 0, 0));
        assert_eq!(of(Sched::Ext { nice: 1 }), (7, 1, 0, 0));
        let deadline = Sched::Deadline { runtime_us: 3, deadline_us: 4, period_us: 5 };
        assert_eq!(of(deadline), (6, 0, 0, 3000));
        let a = attr(&deadline);
        assert_eq!((a.sched_deadline, a.sched_period, a.sched_flags), (4000, 5000, 1));
    }

    #[test]
    fn a_policy_is_set_and_put_back() {
        // a thread of its own: others of this process keep their policy
        let thread = std::thread::spawn(|| {
            let me = Pid::from_raw(0);
            let before = get_attr(me).expect("own policy");
            set(me, &Sched::Batch { nice: 7 }).expect("less than before needs no rights");
            let set = get_attr(me).expect("own policy");
            assert_eq!((set.sched_policy, set.sched_nice), (libc::SCHED_BATCH.cast_unsigned(), 7));
            before.sched_policy
        });
        assert_eq!(thread.join().expect("thread"), libc::SCHED_NORMAL.cast_unsigned());
    }

    #[test]
    fn refusals_say_what_would_help() {
        let eperm = io::Error::from_raw_os_error(libc::EPERM);
        let text = why("rt", &Sched::Fifo { priority: 50 }, &eperm);
        assert!(text.contains("`rt`: SCHED_FIFO 50 needs CAP_SYS_NICE"), "{text}");
        let einval = io::Error::from_raw_os_error(libc::EINVAL);
        assert!(why("x", &Sched::Ext { nice: 0 }, &einval).contains("CONFIG_SCHED_CLASS_EXT"));
    }
}
