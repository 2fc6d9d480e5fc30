// SPDX-License-Identifier: GPL-2.0-only
//! Moves from CPU to CPU, as the kernel counts them: software event `cpu-migrations`.

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

use crate::measure::descriptors;

/// Open while the run lasts.
pub struct Migrations(Vec<Counter>);

impl Migrations {
    /// Counts from now on.
    ///
    /// # Errors
    /// The kernel's, see [`crate::measure::perf::why`]. They happen in the kernel, so
    /// perf_event_paranoid must be 1 or less, or CAP_PERFMON be there.
    pub fn open(pids: &[i32]) -> io::Result<Self> {
        descriptors::make_room(pids.len())?;
        let counter = |&pid: &i32| {
            let mut builder = Builder::new(Software::CPU_MIGRATIONS);
            builder.observe_pid(pid).any_cpu().enabled(true).include_kernel().include_hv().build()
        };
        pids.iter().map(counter).collect::<io::Result<_>>().map(Self)
    }

    /// By task.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&mut self) -> io::Result<Vec<u64>> {
        self.0.iter_mut().map(Counter::read).collect()
    }
}
