// SPDX-License-Identifier: GPL-2.0-only
//! How the observer judges system calls: its own list, by name, so that it
//! does not repeat a mistake of the scheduler's table. A call that is not
//! here endangers. (A call that the scheduler tolerates and this list does not
//! shows up as an offender, by name.)

use std::str::FromStr;

use anyhow::{Result, anyhow};
use syscalls::Sysno;

/// `enum observer_class` of observer/observer.h.
const OTHER: u8 = 1;
const FUTEX: u8 = 2;
const POLL: u8 = 3;
const EPOLL: u8 = 4;

/// Descriptors up to which poll(2), and events up to which epoll_wait(2), counts as sleeping.
pub const POLL_FDS_MAX: u32 = 16;
/// Size of the table: OBS_NR_CALLS.
pub const NR_CALLS: usize = 512;

/// Short, bounded, no contended lock; or bounded set-up, then sleep.
const TOLERATED: &[&str] = &[
    "getpid",
    "gettid",
    "getppid",
    "getpgrp",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getcpu",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "sched_yield",
    "nanosleep",
    "clock_nanosleep",
    "pause",
    "rt_sigsuspend",
    "rt_sigtimedwait",
];

/// The table for the observer: index by number.
pub fn table(strict: bool) -> Result<[u8; NR_CALLS]> {
    let mut t = [0u8; NR_CALLS];
    if strict {
        return Ok(t);
    }
    let mut set = |name: &str, class: u8| -> Result<()> {
        let nr = Sysno::from_str(name).map_err(|()| anyhow!("no system call '{name}'"))?;
        if let Some(slot) = t.get_mut(nr.id() as usize) {
            *slot = class;
        }
        Ok(())
    };
    for name in TOLERATED {
        set(name, OTHER)?;
    }
    set("futex", FUTEX)?;
    set("futex_wait", OTHER)?;
    set("poll", POLL)?;
    set("ppoll", POLL)?;
    for name in ["epoll_wait", "epoll_pwait", "epoll_pwait2"] {
        set(name, EPOLL)?;
    }
    Ok(t)
}

/// The name of system call `nr`.
#[must_use]
pub fn name(nr: u32) -> String {
    Sysno::new(nr as usize).map_or_else(|| format!("call {nr}"), |s| s.name().to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_name_exists() {
        let t = super::table(false).expect("the table");
        assert_eq!(t[0], 0, "read endangers");
        assert_eq!(t[libc::SYS_getpid as usize], super::OTHER);
        assert_eq!(super::name(0), "read");
        assert!(super::table(true).expect("the table").iter().all(|c| *c == 0));
    }
}
