// SPDX-License-Identifier: GPL-2.0-only
//! The scheduling policy of a thread as the kernel tells it, and as a program sets it.

use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::cpus::Cpus;
use crate::guest;

/// The policy that adopted tasks have, SCHED_EXT; libc lacks it.
pub const EXT: u32 = 7;

/// What a thread is to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// SCHED_*.
    pub policy: u32,
    /// Real-time priority.
    pub priority: u32,
    /// SCHED_RESET_ON_FORK.
    pub reset_on_fork: bool,
}

impl Policy {
    /// Without the flag.
    #[must_use]
    pub const fn new(policy: i32, priority: u32) -> Self {
        Self { policy: policy.cast_unsigned(), priority, reset_on_fork: false }
    }

    /// Of the thread `tid`, 0: the caller. `None`: it is gone.
    pub fn of(tid: i32) -> Result<Option<Self>> {
        // SAFETY: all zeroes are a valid value of these integers.
        let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the kernel writes at most the size that is told, which is that of `attr`.
        let r = unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0) };
        if r != 0 {
            let error = io::Error::last_os_error();
            ensure!(error.raw_os_error() == Some(libc::ESRCH), "the policy of {tid}: {error}");
            return Ok(None);
        }
        Ok(Some(Self {
            policy: attr.sched_policy,
            priority: attr.sched_priority,
            reset_on_fork: attr.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0,
        }))
    }

    /// Puts the caller into SCHED_DEADLINE: `runtime` of each `period`.
    pub fn set_deadline(runtime: Duration, period: Duration) -> Result<()> {
        // SAFETY: all zeroes are a valid value of these integers.
        let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
        attr.size = u32::try_from(size_of::<libc::sched_attr>())?;
        attr.sched_policy = libc::SCHED_DEADLINE.cast_unsigned();
        attr.sched_runtime = u64::try_from(runtime.as_nanos())?;
        attr.sched_period = u64::try_from(period.as_nanos())?;
        attr.sched_deadline = attr.sched_period;
        // SAFETY: the kernel reads as much as attr.size says.
        let r = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
        ensure!(r == 0, "SCHED_DEADLINE: {}", io::Error::last_os_error());
        Ok(())
    }

    /// Sets it as programs do, by sched_setscheduler(2). `tid` 0: the caller.
    pub fn set(self, tid: i32) -> Result<()> {
        let flag = if self.reset_on_fork { libc::SCHED_RESET_ON_FORK } else { 0 };
        let param = libc::sched_param { sched_priority: self.priority.cast_signed() };
        // SAFETY: param lives through the call.
        let r = unsafe { libc::sched_setscheduler(tid, self.policy.cast_signed() | flag, &param) };
        ensure!(r == 0, "{self:?} for {tid}: {}", io::Error::last_os_error());
        Ok(())
    }
}

/// The CPUs that a thread may run on.
pub fn cpus_of(tid: i32) -> Result<Cpus> {
    let status = fs::read_to_string(format!("/proc/{tid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.context("no Cpus_allowed_list")?.trim().parse()
}

/// Its priority as the kernel schedules it now: below 0 for a real-time one, boosted or not.
pub fn effective(tid: i32) -> Result<i64> {
    Ok(stat_field(tid, 18)?.parse()?)
}

/// The CPU that it runs on, or ran on last.
pub fn cpu_of(tid: i32) -> Result<u32> {
    Ok(stat_field(tid, 39)?.parse()?)
}

/// Name and nice value of each thread of a process.
pub fn nice_values(pid: u32) -> Result<Vec<(String, i32)>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?.flatten();
    let mut all = Vec::new();
    for tid in threads.filter_map(|e| e.file_name().to_str()?.parse().ok()) {
        // one that has ended meanwhile is none
        let name = fs::read_to_string(format!("/proc/{tid}/comm"));
        let (Ok(name), Ok(nice)) = (name, stat_field(tid, 19)) else { continue };
        all.push((name.trim_end().to_owned(), nice.parse()?));
    }
    Ok(all)
}

/// When the thread began, clock ticks since boot.
pub fn start_ticks(tid: i32) -> Result<u64> {
    Ok(stat_field(tid, 22)?.parse()?)
}

/// Has the process come to a halt? The signal that stops it may reach it later.
pub fn is_stopped(pid: i32) -> Result<bool> {
    Ok(stat_field(pid, 3)? == "T")
}

/// Has the process a child that has not ended? (Not every kernel has a file of its children.)
pub fn has_living_child(pid: i32) -> Result<bool> {
    let parent = pid.to_string();
    let is_it = |id: i32| {
        // a process that is gone by now is none
        stat_field(id, 4).is_ok_and(|of| of == parent) && guest::alive(id.unsigned_abs())
    };
    let ids = fs::read_dir("/proc")?.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    Ok({ ids }.any(is_it))
}

/// A field of /proc/PID/stat by its number in proc(5), 3 at least.
fn stat_field(tid: i32, number: usize) -> Result<String> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat"))?;
    let (_, third) = stat.rsplit_once(") ").context("no name in stat")?;
    let field = number.checked_sub(3).and_then(|n| third.split(' ').nth(n));
    field.map(str::to_owned).context("a short stat")
}

/// Id of the calling thread.
#[must_use]
pub fn gettid() -> i32 {
    // SAFETY: no arguments, no failure.
    unsafe { libc::gettid() }
}
