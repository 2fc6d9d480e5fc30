// SPDX-License-Identifier: GPL-2.0-only
//! How a phase's computing is cut: bursts, and what is between them.

use std::io;

use super::{Go, Work};
use crate::plan::Rhythm;

/// The periods of a phase.
struct Periods {
    begin_ns: u64,
    period_us: u64,
    deadline_us: u64,
}

impl Work<'_> {
    /// All of the phase with that index.
    pub(super) fn phase(&mut self, i: usize) -> io::Result<()> {
        let phase = self.phases[i].0;
        let begin_ns = self.now_ns;
        self.phase_end_ns =
            phase.duration_us.map(|us| begin_ns.saturating_add(us.saturating_mul(1000)));
        self.until_call = phase.call.map_or(u64::MAX, |c| c.every_steps);
        let mut left = phase.work_steps;
        match phase.rhythm {
            Rhythm::Steady => {
                self.burst(i, left, &mut left)?;
            }
            Rhythm::Sleep { every_steps, sleep_us } => {
                while self.burst(i, every_steps, &mut left)? == Go::On && left > 0 {
                    let sleep_ns = self.jitter.around(sleep_us.saturating_mul(1000));
                    if self.sleep_recorded(self.now_ns.saturating_add(sleep_ns)) == Go::Leave {
                        break;
                    }
                }
            }
            Rhythm::Periodic { period_us, burst_steps, deadline_us } => {
                let periods = Periods { begin_ns, period_us, deadline_us };
                self.periodic(i, periods, burst_steps, &mut left)?;
            }
            Rhythm::Items { burst_steps } => {
                while left > 0
                    && let Some(made_ns) = self.take_round()
                    && self.burst_of(i, burst_steps, &mut left, Some(made_ns))? == Go::On
                {
                }
            }
        }
        Ok(())
    }

    fn periodic(
        &mut self,
        i: usize,
        periods: Periods,
        steps: u64,
        left: &mut u64,
    ) -> io::Result<()> {
        let Periods { mut begin_ns, period_us, deadline_us } = periods;
        let period_ns = period_us.saturating_mul(1000);
        loop {
            self.report.periods += 1;
            let go = self.burst(i, steps, left)?;
            if self.burst_end_ns > begin_ns.saturating_add(deadline_us.saturating_mul(1000)) {
                self.report.misses += 1;
            }
            if go == Go::Leave || *left == 0 {
                break;
            }
            let over = self.now_ns.saturating_sub(begin_ns).div_ceil(period_ns).max(1);
            self.report.left_out += over - 1;
            self.report.periods += over - 1;
            self.report.misses += over - 1;
            begin_ns = begin_ns.saturating_add(over.saturating_mul(period_ns));
            if self.sleep_recorded(begin_ns) == Go::Leave {
                break;
            }
        }
        Ok(())
    }
}
