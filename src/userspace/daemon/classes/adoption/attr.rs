// SPDX-License-Identifier: GPL-2.0-only
//! What a task was before it was adopted, and the attributes (sched_setattr(2)) that it has while
//! it is. They say themselves what it was, and a fork copies them: a child that nobody has heard of
//! is known by them. See docs/decisions/0016-adoption.md.

use std::fs;
use std::io;

use nix::libc;
use rustix::process::{Pid, getpriority_process};
use serde::{Deserialize, Serialize};

use crate::control::Class;
use crate::daemon::classes::facts::{SCHED_FIFO, SCHED_RR};
use crate::daemon::scheduler::news::Asked;

/// SCHED_EXT, include/uapi/linux/sched.h: the policy of an adopted task. The kernel treats it as
/// SCHED_OTHER; programs do not ask for it, so whoever has another one was changed by others.
pub const SCHED_EXT: u32 = 7;
/// SCHED_OTHER.
const SCHED_OTHER: u32 = 0;
/// The length of slice that a task asks the fair class for, ns, where the kernel does not tell its
/// default; and the least that leaves room for a code: below 0.1 ms the kernel takes that.
const SLICE_NS: u64 = 3_000_000;
const SLICE_MIN_NS: u64 = 200_000;
/// The code of what a task was is the rest of its slice by this, ns.
const CODE_END: u64 = 1_000;
/// What SCHED_RR adds to the code, which is the priority.
const ROUND_ROBIN: u64 = 100;

/// A real-time policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
}

/// What a task was, as far as adoption takes it away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Of an adopted task, by the attributes that it was given, or was born with.
    pub fn by_code(attr: &libc::sched_attr) -> Option<Self> {
        let code = attr.sched_runtime % CODE_END;
        if attr.sched_policy != SCHED_EXT || resets_on_fork(attr) {
            return None;
        }
        let policy = match code {
            1..ROUND_ROBIN => Policy::Fifo,
            _ if (1..ROUND_ROBIN).contains(&code.checked_sub(ROUND_ROBIN)?) => Policy::Rr,
            _ => return None,
        };
        let priority = u32::try_from(code % ROUND_ROBIN).ok()?;
        Some(Self { policy, priority, reset_on_fork: false })
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

    /// Does a task with these attributes look as adoption left it? If not, somebody has changed it
    /// since, and it is not for us to change it again.
    pub fn is_as_left(self, attr: &libc::sched_attr) -> bool {
        attr.sched_policy == self.guise() && resets_on_fork(attr) == self.reset_on_fork
    }

    /// The policy while it is adopted. The kernel makes a child SCHED_OTHER only if its parent is
    /// of a real-time class, so the parent that demands it is SCHED_OTHER already.
    fn guise(self) -> u32 {
        if self.reset_on_fork { SCHED_OTHER } else { SCHED_EXT }
    }

    fn code(self) -> u64 {
        let round_robin = if self.policy == Policy::Rr { ROUND_ROBIN } else { 0 };
        round_robin + u64::from(self.priority)
    }

    /// Takes the real-time policy away from `tid`. Its nice value stays.
    ///
    /// # Errors
    /// The kernel's; ESRCH: it is gone. Nothing has changed then.
    pub fn adopt(self, tid: i32) -> io::Result<()> {
        set(tid, &self.guised(nice(tid)?, default_slice_ns()))?;
        // as in a real-time class, where timers are not late to save wake-ups; 0 is the default
        set_timer_slack(tid, 1);
        Ok(())
    }

    /// Gives `tid` its policy back.
    ///
    /// # Errors
    /// The kernel's; ESRCH: it is gone.
    pub fn give_back(self, tid: i32) -> io::Result<()> {
        // in one call, so that no child is born in between. The slice stays, and is the default
        let attr = libc::sched_attr {
            sched_policy: self.sched(),
            sched_priority: self.priority,
            ..self.guised(0, 0)
        };
        set(tid, &attr)
    }

    fn guised(self, nice: i32, slice_ns: u64) -> libc::sched_attr {
        let slice_ns = slice_ns - slice_ns % CODE_END + self.code();
        fair(self.guise(), nice, self.reset_on_fork, slice_ns)
    }
}

impl std::fmt::Display for Was {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let policy = if self.policy == Policy::Rr { "SCHED_RR" } else { "SCHED_FIFO" };
        write!(f, "{policy} {}", self.priority)
    }
}

/// Gives `tid` a policy without real-time priority, and the timers that go with it.
///
/// # Errors
/// The kernel's; ESRCH: it is gone.
pub fn set_fair(tid: i32, policy: u32, nice: i32, reset_on_fork: bool) -> io::Result<()> {
    set(tid, &fair(policy, nice, reset_on_fork, 0))?;
    set_timer_slack(tid, 0);
    Ok(())
}

fn fair(policy: u32, nice: i32, reset_on_fork: bool, slice_ns: u64) -> libc::sched_attr {
    let flag = if reset_on_fork { libc::SCHED_FLAG_RESET_ON_FORK } else { 0 };
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: policy,
        sched_flags: flag as u64,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: slice_ns,
        sched_deadline: 0,
        sched_period: 0,
    }
}

fn resets_on_fork(attr: &libc::sched_attr) -> bool {
    attr.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0
}

/// The attributes of a thread; `None`: it is gone.
///
/// # Errors
/// The kernel's.
pub fn get(tid: i32) -> io::Result<Option<libc::sched_attr>> {
    let mut found = fair(0, 0, false, 0);
    // SAFETY: the kernel writes at most the size that is told, which is that of `found`.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut found, found.size, 0) };
    match io::Error::last_os_error() {
        _ if done == 0 => Ok(Some(found)),
        gone if is_gone(&gone) => Ok(None),
        error => Err(error),
    }
}

fn set(tid: i32, attr: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as attr.size says, which is that of its type.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, tid, std::ptr::from_ref(attr), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Does the error mean that there is no such thread?
pub fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ESRCH)
}

/// The slice that tasks have which do not ask for one, as this very thread.
fn default_slice_ns() -> u64 {
    let own = get(0).ok().flatten().map_or(0, |own| own.sched_runtime);
    if own < SLICE_MIN_NS { SLICE_NS } else { own }
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

    fn every() -> impl Iterator<Item = Was> {
        [Policy::Fifo, Policy::Rr].into_iter().flat_map(|policy| {
            (1..=99).map(move |priority| Was { policy, priority, reset_on_fork: false })
        })
    }

    #[test]
    fn attributes_tell_what_a_task_was() {
        for was in every() {
            let attr = was.guised(3, default_slice_ns());
            assert_eq!(Was::by_code(&attr), Some(was));
            assert!(was.is_as_left(&attr) && attr.sched_nice == 3);
        }
    }

    #[test]
    fn others_are_not_taken_for_adopted() {
        let attr = |policy, slice_ns| fair(policy, 0, false, slice_ns);
        for code in [0, 100, 200, 250, 999] {
            assert_eq!(Was::by_code(&attr(SCHED_EXT, SLICE_NS + code)), None, "{code}");
        }
        assert_eq!(Was::by_code(&attr(SCHED_EXT, 0)), None);
        assert_eq!(Was::by_code(&attr(SCHED_OTHER, SLICE_NS + 50)), None);
        let was = Was::new(SCHED_FIFO, 50, false).expect("real time");
        assert!(!was.is_as_left(&attr(SCHED_OTHER, SLICE_NS + 50)), "its own call");
        assert_eq!(Was::new(SCHED_OTHER, 0, false), None);
    }

    #[test]
    fn its_own_wish_for_children_is_kept() {
        let was = Was::new(SCHED_RR, 7, true).expect("real time");
        let attr = was.guised(0, SLICE_MIN_NS);
        assert!(attr.sched_policy == SCHED_OTHER && resets_on_fork(&attr) && was.is_as_left(&attr));
        assert!(!was.is_as_left(&fair(SCHED_OTHER, 0, false, 0)));
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
