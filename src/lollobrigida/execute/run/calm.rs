// SPDX-License-Identifier: GPL-2.0-only
//! The runner itself: it sleeps during the run, and must get a CPU when it wakes, else a
//! hog could keep it from ending the run at its limit.

use nix::unistd::Pid;

use super::policy;
use crate::scene::Sched;

/// Comes before tasks of SCHED_FIFO 99, too. A fifth of a CPU: draining rings, stopping tasks
/// and reading their figures takes less.
const ABOVE_ALL: Sched =
    Sched::Deadline { runtime_us: 20_000, deadline_us: 100_000, period_us: 100_000 };
/// Where the kernel admits no more SCHED_DEADLINE, or the runner is bound to some CPUs.
const ABOVE_MOST: Sched = Sched::Fifo { priority: 99 };

/// The calling thread is more urgent than the tasks of a scene while this is there, as far as that is
/// permitted. Threads that it starts meanwhile are not.
pub struct Calm {
    before: Option<libc::sched_attr>,
}

impl Calm {
    /// From now on. Without rights nothing changes: then there are no real-time hogs
    /// either.
    #[must_use]
    pub fn begin() -> Self {
        let me = Pid::from_raw(0);
        let raise = || policy::set(me, &ABOVE_ALL).or_else(|_| policy::set(me, &ABOVE_MOST));
        let set = policy::get_attr(me).and_then(|before| raise().map(|()| before));
        Self { before: set.ok() }
    }
}

impl Drop for Calm {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(err) = policy::set_attr(Pid::from_raw(0), before)
        {
            eprintln!("lollobrigida stays real time, its own policy could not be put back: {err}");
        }
    }
}
