// SPDX-License-Identifier: GPL-2.0-only
//! The time of each task on each CPU, and its switches: a software event `task-clock` for
//! each pair, counted by the kernel at every switch, so exact to the switch and without any
//! sampling. The same events write the switch records.

use std::collections::BTreeMap;
use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};

use crate::measure::rings::Rings;
use crate::measure::{descriptors, perf};

/// Open while the run lasts.
pub struct OnCpu {
    cpus: Vec<u32>,
    /// By task, then by index of the CPU.
    clocks: Vec<Vec<Counter>>,
}

impl OnCpu {
    /// Counts from now on; the tasks should be asleep. Switch records go to `rings`, made
    /// for the same CPUs.
    ///
    /// # Errors
    /// The kernel's, see [`perf::why`]; perf_event_paranoid 2 is enough for one's own tasks.
    pub fn open(pids: &[i32], cpus: &[u32], rings: Option<&Rings>) -> io::Result<Self> {
        descriptors::make_room(pids.len() * cpus.len())?;
        let clock = |pid: i32, i: usize| {
            let mut builder = Builder::new(Software::TASK_CLOCK);
            Rings::set_form(&mut builder);
            builder.observe_pid(pid).one_cpu(cpus[i] as usize).context_switch(rings.is_some());
            builder.read_format(ReadFormat::LOST);
            let counter = match perf::open_any_mode(&mut builder) {
                // a kernel before 6.0 does not count what is lost
                Err(err) if err.kind() == io::ErrorKind::InvalidInput => {
                    perf::open_any_mode(builder.read_format(ReadFormat::empty()))?
                }
                other => other?,
            };
            rings.map_or(Ok(()), |rings| rings.take_from(i, &counter))?;
            Ok(counter)
        };
        let of_task = |&pid: &i32| (0..cpus.len()).map(|i| clock(pid, i)).collect();
        let clocks = pids.iter().map(of_task).collect::<io::Result<_>>()?;
        Ok(Self { cpus: cpus.to_vec(), clocks })
    }

    /// Time of each task on each CPU where it was, ns. A dead task's can still be read.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&mut self) -> io::Result<Vec<BTreeMap<u32, u64>>> {
        let cpus = &self.cpus;
        let of_task = |clocks: &mut Vec<Counter>| {
            let times = clocks.iter_mut().zip(cpus).map(|(clock, &cpu)| Ok((cpu, clock.read()?)));
            let mut times = times.collect::<io::Result<BTreeMap<_, _>>>()?;
            times.retain(|_, time_ns| *time_ns > 0);
            Ok(times)
        };
        self.clocks.iter_mut().map(of_task).collect()
    }

    /// How many switch records found no room, as far as this kernel counts them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn lost(&mut self) -> io::Result<u64> {
        let lost = |clock: &mut Counter| Ok(clock.read_full()?.lost().unwrap_or(0));
        self.clocks.iter_mut().flatten().map(lost).sum()
    }
}
