// SPDX-License-Identifier: GPL-2.0-only
//! The runner itself: it sleeps during the run, and must get a CPU when it wakes, else a
//! hog could keep it from ending the run at its limit.

use nix::unistd::Pid;

use super::policy;
use crate::scene::Sched;

/// The calling thread is SCHED_FIFO 99 while this is there, if that is permitted; threads
/// that it starts meanwhile are, too.
pub struct Calm {
    before: Option<libc::sched_attr>,
}

impl Calm {
    /// From now on. Without rights nothing changes: then there are no real-time hogs
    /// either.
    #[must_use]
    pub fn begin() -> Self {
        let me = Pid::from_raw(0);
        let set = policy::get_attr(me)
            .and_then(|before| policy::set(me, &Sched::Fifo { priority: 99 }).map(|()| before));
        Self { before: set.ok() }
    }
}

impl Drop for Calm {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(err) = policy::set_attr(Pid::from_raw(0), before)
        {
            eprintln!(
                "lollobrigida keeps SCHED_FIFO 99, its own policy could not be put back: {err}"
            );
        }
    }
}
