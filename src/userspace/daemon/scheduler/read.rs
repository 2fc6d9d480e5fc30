// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon reads of a scheduler in charge.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd;
use std::ptr;

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};

use super::{Scheduler, sample};
use crate::abi::artis_cpu;
use crate::abi::bindings::{self as abi, ARTIS_SHARE_SHIFT};
use crate::abi::skel::types::artis_group;
use crate::config::CpuSet;
use crate::daemon::task;
use crate::model::{CpuReading, Reading, RtShare, Running, TaskReading, printable};

impl Scheduler<'_> {
    /// Looks at all counters now.
    ///
    /// # Errors
    /// When the sampling program cannot be run.
    pub fn read(&self) -> Result<Reading> {
        let now_ns = sample(&self.skel)?;
        let groups = self.groups(); // once: the CPUs of a group are to agree
        let read = |id| self.read_cpu(id, now_ns, &groups);
        let mut cpus: Vec<_> = self.partition.cpus().map(read).collect();
        self.leave_out_self(&mut cpus);
        let policy_seq = self.skel.maps.data_policy_data.as_ref().map_or(0, |data| data.policy.seq);
        let started_ns = self.started_ns;
        Ok(Reading { now_ns, started_ns, policy_seq, every_task: false, cpus })
    }

    /// Takes the weight of the thread that reads off where it is counted. It is there whenever
    /// somebody looks, and at its nice value it weighs as much as 89 others.
    fn leave_out_self(&self, cpus: &mut [CpuReading]) {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        if let Ok(Some(own)) = self.lookup(tid) {
            task::leave_out(&own, cpus);
        }
    }

    /// What is remembered of the task with this thread id; `None`: there is no such task,
    /// or it never was one of the ext class.
    ///
    /// # Errors
    /// When the kernel refuses the look-up.
    pub fn read_task(&self, tid: u32) -> Result<Option<TaskReading>> {
        Ok(self.lookup(tid)?.as_deref().and_then(task::reading))
    }

    /// The bytes of a thread's `struct artis_task`.
    fn lookup(&self, tid: u32) -> Result<Option<Vec<u8>>> {
        let Some(pidfd) = task::pidfd(tid) else { return Ok(None) };
        let key = pidfd.as_raw_fd().to_ne_bytes();
        let value = self.skel.maps.task_stor.lookup(&key, MapFlags::ANY);
        value.with_context(|| format!("looking up task {tid}"))
    }

    /// A copy of one CPU's struct. BPF goes on writing it: the fields are each
    /// whole, but may be of slightly different moments.
    pub(super) fn cpu(&self, id: usize) -> artis_cpu {
        let Some(cpu) = self.skel.maps.bss_cpus_data.as_ref().and_then(|data| data.cpus.get(id))
        else {
            return artis_cpu::default();
        };
        // SAFETY: `cpu` is a valid reference into the map's memory, which lives
        // as long as the skeleton; volatile, because BPF writes it meanwhile.
        // The struct is plain integers, so whatever is read is a valid value.
        unsafe { ptr::read_volatile(cpu) }
    }

    /// CPUs that real-time tasks hold now, and since when, a number that grows.
    pub fn held(&self) -> BTreeMap<usize, u64> {
        let held =
            self.partition.cpus().map(|id| (id, self.cpu(id))).filter(|(_, cpu)| cpu.rt.in_rt != 0);
        held.map(|(id, cpu)| (id, cpu.rt.since_ns)).collect()
    }

    /// Is there a runnable ext task that may run on this CPU only?
    pub fn has_bound(&self, cpu: usize) -> bool {
        self.cpu(cpu).own.weight != 0
    }

    /// Does one of these CPUs go offline? The kernel calls it online for a while yet.
    pub fn leaves(&self, online: &CpuSet) -> bool {
        online.iter().any(|cpu| self.cpu(cpu).gone != 0)
    }

    /// The group of a CPU, and its capacity, up to 1.
    fn place(&self, id: usize) -> (usize, f64) {
        self.skel.maps.data_topology_data.as_ref().map_or((0, 1.0), |data| {
            let topology = &data.topology;
            (topology.group[id].into(), f64::from(topology.capacity[id]) / 1024.0)
        })
    }

    /// A copy of what is kept of the groups, as [`Self::cpu`] makes one of a CPU.
    fn groups(&self) -> Vec<artis_group> {
        let Some(data) = self.skel.maps.bss_data.as_ref() else { return Vec::new() };
        // SAFETY: valid references into the map's memory, which lives as long as the skeleton;
        // volatile, because BPF writes it meanwhile. Plain integers: whatever is read is valid.
        data.groups.iter().map(|group| unsafe { ptr::read_volatile(group) }).collect()
    }

    /// What is counted as runnable, a text for each place that is not empty. Once the kernel has
    /// taken all tasks back nothing is, unless a task was counted or left out twice: the balance
    /// of load was wrong then.
    pub(super) fn counted_as_runnable(&self) -> Vec<String> {
        let groups = self.groups().into_iter().enumerate();
        let of_groups = groups.filter_map(|(group, data)| {
            let [_, bound, calm] = data.clock.map(|clock| clock.weight.cast_signed());
            ((bound, calm) != (0, 0))
                .then(|| format!("group {group}: weights {bound} bound, {calm} calm"))
        });
        let of_cpus = self.partition.cpus().filter_map(|id| {
            let weight = self.cpu(id).own.weight.cast_signed();
            (weight != 0).then(|| format!("CPU {id}: weight {weight} of tasks of its own"))
        });
        of_groups.chain(of_cpus).collect()
    }

    fn read_cpu(&self, id: usize, now_ns: u64, groups: &[artis_group]) -> CpuReading {
        let cpu = self.cpu(id);
        let in_section_ns = since(cpu.section_since_ns, now_ns);
        let (group, capacity) = self.place(id);
        let of_group = groups.get(group).copied().unwrap_or_default();
        let weight = |queue: abi::artis_queue| of_group.clock[queue as usize].weight;
        CpuReading {
            id,
            kind: self.partition.kind(id),
            group,
            capacity,
            own_weight: cpu.own.weight,
            bound_weight: weight(abi::artis_queue_ARTIS_QUEUE_BOUND),
            calm_weight: weight(abi::artis_queue_ARTIS_QUEUE_CALM),
            rt: rt_share(&cpu),
            loose_ns: cpu.loose_ns,
            loose_calls: cpu.loose_calls,
            ext_ns: cpu.ext_ns,
            ext_running: cpu.ext_running != 0,
            running: running(&cpu),
            residence_ns: cpu.residence_ns + in_section_ns,
            residence_max_ns: cpu.residence_max_ns.max(in_section_ns),
            body_cause: cpu.body_cause,
            own_queued: u64::try_from(cpu.own_queued).unwrap_or(0),
            // a length may be an error number
            shared_queued: of_group
                .queued
                .map(|queued| u64::try_from(queued).unwrap_or(0))
                .iter()
                .sum(),
            residence: cpu.residence.slot.into(),
            arrival: cpu.arrival.slot.into(),
            records: cpu.records,
            records_lost: cpu.records_lost,
            records_over: cpu.records_over,
            stat: cpu.stat,
        }
    }
}

/// Time from `begin_ns` (0: not begun) to `now_ns`.
pub(super) fn since(begin_ns: u64, now_ns: u64) -> u64 {
    if begin_ns == 0 { 0 } else { now_ns.saturating_sub(begin_ns) }
}

pub(super) fn rt_comm(cpu: &artis_cpu) -> String {
    printable(&cpu.rt_comm.map(i8::cast_unsigned))
}

fn rt_share(cpu: &artis_cpu) -> RtShare {
    let ended = RtShare {
        avg: f64::from(cpu.rt.avg) / f64::from(1u32 << ARTIS_SHARE_SHIFT),
        in_rt: false,
        updated_ns: cpu.rt.updated_ns,
        total_ns: cpu.rt.total_ns,
    };
    if cpu.rt.in_rt == 0 {
        return ended;
    }
    // BPF computes the average when the real-time task has run
    let since_ns = cpu.rt.since_ns;
    RtShare { avg: ended.at(since_ns), in_rt: true, updated_ns: since_ns, ..ended }
}

fn running(cpu: &artis_cpu) -> Option<Running> {
    if cpu.rt.in_rt != 0 {
        return Some(Running { pid: cpu.rt_pid, comm: rt_comm(cpu), realtime: true });
    }
    (cpu.ext_running != 0 && cpu.curr_pid != 0).then(|| {
        // a thread that has ended meanwhile has no name any more
        let comm = fs::read(format!("/proc/{}/comm", cpu.curr_pid)).unwrap_or_default();
        Running { pid: cpu.curr_pid, comm: printable(comm.trim_ascii_end()), realtime: false }
    })
}
