// SPDX-License-Identifier: GPL-2.0-only
//! An observer of how tasks are spread over CPUs (observer/occupancy.bpf.c).

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};

use crate::cpus::Cpus;
use crate::guest::pause;
use crate::skeleton;
use crate::spread::{CpuTime, Snapshot, TaskTime};
use crate::work::monotonic_ns;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/occupancy_skel.rs"));
}
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    include!(concat!(env!("OUT_DIR"), "/observer_intf.rs"));
}
use intf::{
    obs_running_OBS_RUNS_IDLE as IDLE, obs_running_OBS_RUNS_OTHER as OTHER,
    obs_running_OBS_RUNS_RT as RT, obs_running_OBS_RUNS_WATCHED as WATCHED,
};
use skel::{OccupancySkel, OccupancySkelBuilder};

/// The attached programs. They count from the begin.
pub struct Occupancy {
    skel: OccupancySkel<'static>,
    cpus: Cpus,
    watched: usize,
}

/// Evictions from one CPU to another while these NRT CPUs were idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Eviction {
    /// The RT CPU that the task left.
    pub from: u32,
    /// The NRT CPU where it went on.
    pub to: u32,
    /// NRT CPUs that were idle when it left, a mask.
    pub idle: u64,
}

/// Where a watched task stands at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stand {
    /// It ended.
    Absent,
    /// It runs on this CPU.
    Runs(u32),
    /// It waits in this dispatch queue of a sched_ext scheduler.
    Queued(u64),
    /// It waits, in no dispatch queue; the kernel has it on this CPU.
    Waits(u32),
    /// It sleeps.
    Sleeps,
}

impl Occupancy {
    /// Loads and attaches. `wasted_ns`: an eviction sooner than this after the move makes
    /// that move a wasted one (run time).
    pub fn attach(rt: Cpus, wasted_ns: u64) -> Result<Self> {
        let cpus = Cpus::online()?;
        ensure!(cpus.last()? < intf::observer_limits_OBS_FEW_CPUS, "too many CPUs: {cpus}");
        let skel = skeleton::attach(OccupancySkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("the observer has no rodata")?;
            ro.rt_mask = rt.0;
            ro.wasted_ns = wasted_ns;
            Ok(())
        })?;
        Ok(Self { skel, cpus, watched: 0 })
    }

    /// Watches these tasks, too; slots are given in the order of the calls. Returns the
    /// first one's.
    pub fn watch(&mut self, pids: impl IntoIterator<Item = u32>) -> Result<usize> {
        let first = self.watched;
        for pid in pids {
            let slot = self.watched;
            let bss = self.skel.maps.bss_data.as_deref_mut().context("no data")?;
            bss.watched.get_mut(slot).context("too many tasks are watched")?.pid = pid;
            let slot = u32::try_from(slot)?.to_ne_bytes();
            let slots = &self.skel.maps.slots;
            slots.update(&pid.to_ne_bytes(), &slot, MapFlags::ANY).context("watch a task")?;
            self.watched += 1;
        }
        Ok(first)
    }

    /// All that was counted, up to now: what runs at this moment is counted up to now.
    pub fn snapshot(&mut self) -> Result<Snapshot> {
        let n = self.watched;
        let bss = self.skel.maps.bss_data.as_deref().context("the observer has no data")?;
        let mut tasks = vec![TaskTime::default(); n];
        let mut cpus = BTreeMap::new();
        for cpu in self.cpus.iter() {
            let time = &raw const bss.cpu_times[cpu as usize];
            // the CPU may switch meanwhile: its column belongs together
            let (time, now_ns) = loop {
                // SAFETY: inside the mapped data, which the programs write at any time
                let before = unsafe { time.read_volatile() };
                for (t, w) in tasks.iter_mut().zip(&bss.watched) {
                    let run_ns = &raw const w.run_ns[cpu as usize];
                    // SAFETY: as above
                    t.run_ns.insert(cpu, unsafe { run_ns.read_volatile() });
                }
                let now_ns = monotonic_ns()?;
                // SAFETY: as above
                let same = unsafe { time.read_volatile() }.seq == before.seq;
                if same && before.seq.is_multiple_of(2) {
                    break (before, now_ns);
                }
                // under icount the writer goes on when it is its virtual CPU's turn
                std::hint::spin_loop();
            };
            let open_ns = now_ns.saturating_sub(time.since_ns);
            let open = |what| if time.runs == what { open_ns } else { 0 };
            if let Some(slot) = time.runs.checked_sub(WATCHED)
                && let Some(ns) = tasks.get_mut(slot as usize).and_then(|t| t.run_ns.get_mut(&cpu))
            {
                *ns += open_ns;
            }
            let seen = CpuTime {
                idle_ns: time.idle_ns + open(IDLE),
                rt_ns: time.rt_ns + open(RT),
                other_ns: time.other_ns + open(OTHER),
            };
            cpus.insert(cpu, seen);
        }
        for (t, w) in tasks.iter_mut().zip(&bss.watched) {
            (t.moves, t.evictions, t.wasted) = (w.moves, w.evictions, w.wasted);
        }
        Ok(Snapshot { at_ns: monotonic_ns()?, cpus, tasks })
    }

    /// What happens in the next `secs`.
    pub fn over(&mut self, secs: f64) -> Result<Snapshot> {
        let before = self.snapshot()?;
        pause(secs);
        Ok(self.snapshot()?.since(&before))
    }

    /// Evictions since the last call, by kind.
    pub fn drain_evictions(&self) -> Result<BTreeMap<Eviction, u64>> {
        let map = &self.skel.maps.evictions;
        let mut all = BTreeMap::new();
        for key in map.keys().collect::<Vec<_>>() {
            let Some(value) = map.lookup_and_delete(&key)? else { continue };
            ensure!(
                key.len() == size_of::<intf::obs_eviction>() && value.len() == 8,
                "the observer's map is of another size"
            );
            let kind = Eviction {
                from: u32::from_ne_bytes(key[..4].try_into()?),
                to: u32::from_ne_bytes(key[4..8].try_into()?),
                idle: u64::from_ne_bytes(key[8..].try_into()?),
            };
            all.insert(kind, u64::from_ne_bytes(value.as_slice().try_into()?));
        }
        Ok(all)
    }

    /// Where each watched task stands now, by slot.
    pub fn stands(&mut self) -> Result<Vec<Stand>> {
        self.skel
            .progs
            .occ_sample
            .test_run(ProgramInput::default())
            .context("look at the tasks")?;
        let bss = self.skel.maps.bss_data.as_deref().context("the observer has no data")?;
        Ok(bss.stands[..self.watched]
            .iter()
            .map(|s| match s.what {
                intf::obs_standing_OBS_ON_CPU => Stand::Runs(s.cpu),
                intf::obs_standing_OBS_WAITS if s.queue != 0 => Stand::Queued(s.queue),
                intf::obs_standing_OBS_WAITS => Stand::Waits(s.cpu),
                intf::obs_standing_OBS_SLEEPS => Stand::Sleeps,
                _ => Stand::Absent,
            })
            .collect())
    }
}
