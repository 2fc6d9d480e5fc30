// SPDX-License-Identifier: GPL-2.0-only
//! A burst of computing, with the memory and the calls in between.

use std::io;

use super::{Go, Work};
use crate::actor::{clock, kernel};

impl Work<'_> {
    /// A burst that is made of no items.
    pub(super) fn burst(&mut self, i: usize, steps: u64, left: &mut u64) -> io::Result<Go> {
        self.burst_of(i, steps, left, None)
    }

    /// A burst with its jitter, bounded by the phase's work, and the item that it makes.
    pub(super) fn burst_of(
        &mut self,
        i: usize,
        steps: u64,
        left: &mut u64,
        made_ns: Option<u64>,
    ) -> io::Result<Go> {
        let steps = if steps == *left { steps } else { self.jitter.around(steps).clamp(1, *left) };
        let go = self.compute(i, steps)?;
        self.burst_end_ns = self.now_ns;
        if go == Go::Leave {
            return Ok(go);
        }
        if *left != u64::MAX {
            *left -= steps;
        }
        if let (Some(made_ns), Some(ages)) = (made_ns, &mut self.report.item_age) {
            ages.record(self.now_ns.saturating_sub(made_ns));
        }
        Ok(self.post(made_ns.unwrap_or(self.now_ns)))
    }

    /// So many steps, in chunks that end with the iteration or at a call.
    fn compute(&mut self, i: usize, steps: u64) -> io::Result<Go> {
        let mut left = steps;
        while left > 0 {
            if self.over() {
                return Ok(Go::Leave);
            }
            let chunk = left.min(self.until_walk).min(self.until_call);
            let from_ns = self.now_ns;
            self.x = kernel::compute(chunk, self.x);
            self.read_clock();
            self.sampler.chunk(from_ns, self.now_ns, clock::cpu(), chunk);
            self.report.steps += chunk;
            left -= chunk;
            self.until_walk -= chunk;
            if self.until_walk == 0 {
                self.until_walk = self.steps_per_loop;
                self.memory.walk();
                self.look();
            }
            if self.until_call != u64::MAX {
                self.until_call -= chunk;
                if self.until_call == 0 {
                    self.call(i)?;
                }
            }
        }
        Ok(Go::On)
    }

    fn call(&mut self, i: usize) -> io::Result<()> {
        let (phase, caller) = &mut self.phases[i];
        if let (Some(call), Some(caller)) = (phase.call, caller) {
            self.until_call = call.every_steps;
            let made = caller.make()?;
            self.report.calls.scene += made.calls;
            self.report.faults += made.faults;
            self.look();
        }
        Ok(())
    }
}
