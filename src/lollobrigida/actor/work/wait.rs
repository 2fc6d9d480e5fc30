// SPDX-License-Identifier: GPL-2.0-only
//! Where a task waits: for items, for room, and for the time.

use super::{Go, Work};
use crate::actor::board::Turn;
use crate::actor::futex;

impl Work<'_> {
    /// One item of each producer: the time at which the oldest was made. `None`: no more.
    pub(super) fn take_round(&mut self) -> Option<u64> {
        let mut made_ns = u64::MAX;
        for from in &mut self.takes {
            match from.take(self.phase_end_ns, &mut self.link_calls) {
                Turn::Item(stamp) => {
                    self.report.items_taken += 1;
                    made_ns = made_ns.min(stamp);
                }
                Turn::Closed | Turn::Left => {
                    // the producer may have ended because the run is stopped
                    self.stopped();
                    return None;
                }
            }
        }
        self.read_clock();
        Some(made_ns)
    }

    /// An item to each consumer that has not ended.
    pub(super) fn post(&mut self, made_ns: u64) -> Go {
        if self.posts.is_empty() {
            return Go::On;
        }
        for to in &mut self.posts {
            match to.post(made_ns, self.phase_end_ns, &mut self.link_calls) {
                Turn::Item(_) => self.report.items_posted += 1,
                Turn::Closed => {}
                Turn::Left => {
                    self.stopped();
                    return Go::Leave;
                }
            }
        }
        self.read_clock();
        Go::On
    }

    /// Sleeps, not beyond the phase's end, and keeps how late it woke.
    pub(super) fn sleep_recorded(&mut self, until_ns: u64) -> Go {
        let until_ns = until_ns.min(self.phase_end_ns.unwrap_or(u64::MAX));
        if self.sleep_until(until_ns)
            && let Some(wakeup) = &mut self.report.wakeup
        {
            wakeup.record(self.now_ns.saturating_sub(until_ns));
        }
        if self.over() { Go::Leave } else { Go::On }
    }

    /// Whether it slept to the end.
    pub(super) fn sleep_until(&mut self, until_ns: u64) -> bool {
        let until = futex::timespec(until_ns);
        loop {
            self.report.calls.sleeps += 1;
            // SAFETY: reads one timespec; with an absolute time nothing is written.
            let done = unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &until,
                    std::ptr::null_mut(),
                )
            };
            if done != libc::EINTR || self.stopped() {
                self.read_clock();
                return done == 0;
            }
        }
    }
}
