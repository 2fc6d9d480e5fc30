// SPDX-License-Identifier: GPL-2.0-only
//! What a task was before it was adopted, and the attributes (sched_setattr(2)) that it has while
//! it is. A task can set them itself, so they never tell what it was: a record of the kernel does
//! ([`super::changes`]).

use std::fs;
use std::io;

use nix::libc;
use rustix::process::{Pid, getpriority_process};

use super::aim::Aimed;
use crate::control::Class;
use crate::daemon::classes::facts::{self, SCHED_FIFO, SCHED_RR};
use crate::daemon::sched;
pub use crate::daemon::sched::{get, is_gone};
use crate::daemon::scheduler::news::Asked;

/// SCHED_EXT, include/uapi/linux/sched.h: the policy of an adopted task. The kernel treats it as
/// SCHED_OTHER; programs do not ask for it, so whoever has another one was changed by others.
pub const SCHED_EXT: u32 = 7;
/// SCHED_OTHER.
const SCHED_OTHER: u32 = 0;

/// A real-time policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

/// What a task was, as far as adoption takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Was {
    /// Its policy.
    pub policy: Policy,
    /// Its priority, 1 to 99.
    pub priority: u32,
    /// Its children are not to be real time (SCHED_RESET_ON_FORK).
    pub reset_on_fork: bool,
}

impl Was {
    /// `policy` as sched(7) has it; `None`: neither SCHED_FIFO nor SCHED_RR.
    pub fn new(policy: u32, priority: u32, reset_on_fork: bool) -> Option<Self> {
        let policy = match policy {
            SCHED_FIFO => Policy::Fifo,
            SCHED_RR => Policy::Rr,
            _ => return None,
        };
        Some(Self { policy, priority, reset_on_fork })
    }

    /// By the attributes that it has now; `None`: it is no task of SCHED_FIFO or SCHED_RR.
    pub fn now(attr: &libc::sched_attr) -> Option<Self> {
        Self::new(attr.sched_policy, attr.sched_priority, resets_on_fork(attr))
    }

    /// What it is after somebody has asked the kernel to make this of it. `Err`: not real time any
    /// more, or of SCHED_DEADLINE.
    pub fn after(self, asked: Asked) -> Result<Self, Asked> {
        match (asked.policy, asked.priority) {
            (None, 0) => Ok(self), // nothing that is about real time
            (None, priority) => Ok(Self { priority, ..self }),
            (Some(policy), priority) => {
                Self::new(policy, priority, asked.reset_on_fork).ok_or(asked)
            }
        }
    }

    /// The class of it as an RT1+ task.
    pub fn class(self) -> Class {
        let priority = self.priority.min(*Class::PRIORITIES.end());
        Class::Rt1 { priority, round_robin: self.policy == Policy::Rr }
    }

    /// SCHED_FIFO or SCHED_RR.
    pub fn sched(self) -> u32 {
        match self.policy {
            Policy::Fifo => SCHED_FIFO,
            Policy::Rr => SCHED_RR,
        }
    }

    /// The policy while it is adopted. The kernel makes a child SCHED_OTHER only if its parent is
    /// of a real-time class, so the parent that demands it is SCHED_OTHER already.
    fn guise(self) -> u32 {
        if self.reset_on_fork { SCHED_OTHER } else { SCHED_EXT }
    }

    /// Takes the real-time policy away from the task. Its nice value stays.
    ///
    /// # Errors
    /// The kernel's; ESRCH: it is gone. Nothing has changed then.
    pub fn adopt(self, task: Aimed) -> io::Result<()> {
        set(task, &fair(self.guise(), nice(task.tid())?, self.reset_on_fork))?;
        // as in a real-time class, where timers are not late to save wake-ups; 0 is the default
        set_timer_slack(task.tid(), 1);
        Ok(())
    }

    /// Gives the task its policy back.
    ///
    /// # Errors
    /// The kernel's; ESRCH: it is gone.
    pub fn give_back(self, task: Aimed) -> io::Result<()> {
        let attr = libc::sched_attr {
            sched_priority: self.priority,
            ..fair(self.sched(), 0, self.reset_on_fork)
        };
        set(task, &attr)
    }
}

impl std::fmt::Display for Was {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policy = if self.policy == Policy::Rr { "SCHED_RR" } else { "SCHED_FIFO" };
        write!(f, "{policy} {}", self.priority)
    }
}

/// Gives the task a policy without real-time priority, and the timers that go with it.
///
/// # Errors
/// The kernel's; ESRCH: it is gone.
pub fn set_fair(task: Aimed, policy: u32, nice: i32, reset_on_fork: bool) -> io::Result<()> {
    set(task, &fair(policy, nice, reset_on_fork))?;
    set_timer_slack(task.tid(), 0);
    Ok(())
}

fn fair(policy: u32, nice: i32, reset_on_fork: bool) -> libc::sched_attr {
    let flag = if reset_on_fork { libc::SCHED_FLAG_RESET_ON_FORK } else { 0 };
    libc::sched_attr { sched_flags: flag as u64, sched_nice: nice, ..sched::attr(policy) }
}

/// Might adoption have left a task with these attributes? (A task can set them itself, too.)
pub fn is_adopted_like(attr: &libc::sched_attr) -> bool {
    match attr.sched_policy {
        SCHED_EXT => true,
        policy => policy == SCHED_OTHER && resets_on_fork(attr),
    }
}

/// Is a task with these attributes of a kernel real-time class by its policy?
pub fn is_realtime(attr: &libc::sched_attr) -> bool {
    facts::is_realtime(attr.sched_policy)
}

fn resets_on_fork(attr: &libc::sched_attr) -> bool {
    attr.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0
}

fn set(task: Aimed, attr: &libc::sched_attr) -> io::Result<()> {
    sched::set(task.tid(), attr)
}

/// sched_getattr(2) does not tell it of a real-time task.
fn nice(tid: i32) -> io::Result<i32> {
    Ok(getpriority_process(Pid::from_raw(tid))?)
}

/// A thread that is gone by now needs none, and one that keeps its old one is late by 50 µs.
fn set_timer_slack(tid: i32, ns: u64) {
    if let Err(error) = fs::write(format!("/proc/{tid}/timerslack_ns"), ns.to_string())
        && error.kind() != io::ErrorKind::NotFound
        && !is_gone(&error)
    {
        log::info!("the timers of task {tid} stay as they are: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_was_is_read_from_a_real_time_one_only() {
        let attr =
            |policy, sched_priority| libc::sched_attr { sched_priority, ..fair(policy, 0, true) };
        assert_eq!(Was::now(&attr(SCHED_RR, 7)), Was::new(SCHED_RR, 7, true));
        for policy in [SCHED_OTHER, SCHED_EXT, facts::SCHED_DEADLINE] {
            // whatever else a task may have set of itself
            let forged = libc::sched_attr { sched_runtime: 3_000_099, ..attr(policy, 0) };
            assert_eq!(Was::now(&forged), None, "{policy}");
        }
    }

    #[test]
    fn the_highest_priority_is_the_kernels() {
        let of = |priority| Was::new(SCHED_RR, priority, false).expect("real time").class();
        let rt1 = |priority| Class::Rt1 { priority, round_robin: true };
        assert_eq!([of(1), of(98), of(99)], [rt1(1), rt1(98), rt1(98)]);
    }

    #[test]
    fn the_dead_have_no_attributes() {
        assert!(get(i32::MAX).expect("no other error").is_none());
        let own = get(0).expect("readable").expect("there");
        assert_eq!(own.sched_policy, SCHED_OTHER);
    }
}
