// SPDX-License-Identifier: GPL-2.0-only
//! The moment in which the kernel hands the machine over.
//!
//! Once it has begun, a task that is forked, or that is given another policy, is of the ext class,
//! beneath all others, which are still of the fair class. In the midst of a fork, or preempted in an
//! RCU read-side section, it does not run where fair tasks compute on every CPU; the kernel waits for
//! the end of both before it puts the others into the ext class, too. To 6.18 it waits without end
//! (docs/decisions/0025-takeover.md).

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::libc;
use procfs::process::{Process, Task};

use crate::daemon::sched;

/// A takeover that takes longer than this is helped on, again and again.
const PATIENCE: Duration = Duration::from_secs(2);

/// Has `take_over` put the scheduler in charge, and helps the kernel if that does not come to its end.
pub fn attended<T>(take_over: impl FnOnce() -> T) -> T {
    let (is_over, over) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let attend = move || {
            while over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let moved = move_all();
                log::info!("the takeover takes its time: {moved} threads are moved");
            }
        };
        let attendant = thread::Builder::new().name("takeover".into());
        if let Err(error) = attendant.spawn_scoped(scope, attend) {
            log::warn!("nothing helps a takeover that does not end: {error}");
        }
        let taken = take_over();
        drop(is_over);
        taken
    })
}

/// Moves every thread of the fair class into the class that the kernel has for it by now. Those of
/// this process stay: beneath the others they could help no more. Returns how many were moved.
fn move_all() -> usize {
    let own = std::process::id().cast_signed();
    let processes = procfs::process::all_processes().into_iter().flatten().flatten();
    let tasks = processes.filter(|process| process.pid != own).filter_map(|process: Process| {
        // what cannot be read has ended
        process.tasks().ok()
    });
    let ready = tasks.flatten().flatten().filter(has_run);
    ready.filter(|task| move_one(task.tid).unwrap_or(false)).count()
}

/// One that has not run yet may be in the midst of its parent's fork: it is listed, but not ready for
/// the ext class, and the kernel warns of the change of its class.
fn has_run(task: &Task) -> bool {
    task.schedstat().is_ok_and(|times| times.pcount > 0)
}

/// The kernel chooses the class of a thread anew whenever its policy is set to another one. False: it
/// is gone, or none of the fair class.
fn move_one(tid: i32) -> io::Result<bool> {
    let Some(attr) = sched::get(tid)? else { return Ok(false) };
    let other = match attr.sched_policy.cast_signed() {
        libc::SCHED_OTHER => libc::SCHED_BATCH,
        libc::SCHED_BATCH => libc::SCHED_OTHER,
        _ => return Ok(false),
    };
    // by number, which another thread may have got meanwhile: each keeps the nice value that it has
    let resets = attr.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0;
    sched::set_normal(tid, other.cast_unsigned(), resets)?;
    sched::set_normal(tid, attr.sched_policy, resets)?;
    Ok(true)
}
