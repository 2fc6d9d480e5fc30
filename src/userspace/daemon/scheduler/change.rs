// SPDX-License-Identifier: GPL-2.0-only
//! What can be changed of a scheduler in charge: the policy constants word by
//! word, and the partition. BPF reads both while they are written.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{ptr, thread};

use anyhow::{Context, Result, bail};
use libbpf_rs::ProgramInput;
use nix::errno::Errno;

use super::{Scheduler, run_with};
use crate::abi::skel::BpfSkel;
use crate::abi::{CpuKind, artis_policy, artis_set_class, artis_topology};
use crate::config::{KNOBS, Partition};
use crate::control::{Class, Treatment};
use crate::daemon::classes::facts::TaskId;
use crate::daemon::live::InCharge;

impl InCharge for Scheduler<'_> {
    fn set_policy(&mut self, wanted: &artis_policy) -> Result<()> {
        let data = self.skel.maps.data_policy_data.as_mut();
        store_policy(&mut data.context("the BPF object has no policy")?.policy, wanted);
        Ok(())
    }

    fn repartition(
        &mut self,
        partition: &Partition,
        wanted: &artis_policy,
        topology: &artis_topology,
    ) -> Result<()> {
        let before = *self.topology()?;
        let kinds_before = self.partition.kinds();
        let gone = |cpu: &usize| self.cpu(*cpu).kind == CpuKind::Absent as u8;
        let gone: Vec<_> = self.partition.cpus().filter(gone).collect();
        self.faults.forget(|cpu| gone.contains(&cpu));
        self.write_partition(&wanted.cpu_kind, topology)?;
        if let Err(error) = set_partition(&self.skel) {
            self.write_partition(&kinds_before, &before)?;
            // twice: the first one may only finish what the failed one began
            set_partition(&self.skel)
                .and_then(|()| set_partition(&self.skel))
                .context("going back to the partition before, after the new one failed")?;
            return Err(error);
        }
        self.partition = partition.clone();
        self.set_policy(wanted)?;
        if let Err(error) = self.faults.watch(&self.skel, self.partition.cpus()) {
            log::error!("not all page faults are seen: {error:#}");
        }
        look_twice(|| look_again(&self.skel));
        Ok(())
    }

    fn set_class(&mut self, task: TaskId, to: &Treatment) -> Result<Option<Treatment>> {
        let (rt1, rr) = match to.class {
            Class::Nrt => (0, false),
            Class::Rt1 { priority, round_robin } => (priority, round_robin),
        };
        let mut args = artis_set_class {
            start_ticks: task.start_ticks,
            pid: task.tid.cast_unsigned(),
            rt1,
            rr: rr.into(),
            rt_forbidden: (!to.rt_cpus).into(),
            by_hand: to.by_hand.into(),
            ..Default::default()
        };
        let code = run_with(&self.skel.progs.artis_set_class, &mut args)
            .context("changing the class of a task")?;
        match code {
            0 => Ok(Some(Treatment {
                class: match args.rt1 {
                    0 => Class::Nrt,
                    priority => Class::Rt1 { priority, round_robin: args.rr != 0 },
                },
                rt_cpus: args.rt_forbidden == 0,
                by_hand: args.by_hand != 0,
            })),
            _ if code == -(Errno::ESRCH as i32) => Ok(None),
            _ => {
                bail!("BPF did not take the class of task {}: {}", task.tid, Errno::from_raw(-code))
            }
        }
    }
}

impl Scheduler<'_> {
    /// How many CPUs have gone or come since the scheduler is in charge.
    pub fn hotplug_seq(&mut self) -> u32 {
        let Some(data) = self.skel.maps.data_watch_data.as_mut() else { return 0 };
        // SAFETY: aligned, and valid for as long as the exclusive borrow of `data`; BPF changes it.
        unsafe { AtomicU32::from_ptr(&mut data.hotplug_seq) }.load(Ordering::Acquire)
    }

    /// To be called before [`InCharge::repartition`] where a CPU may have gone and come back while BPF
    /// did not see it: its hook of page faults is void, and made anew with the partition.
    pub fn forget_faults(&mut self) {
        self.faults.forget(|_| true);
    }

    /// Has a CPU that goes offline look once more whether its run queue is empty. It waits for that,
    /// and is not told where another CPU has taken the last task (docs/decisions/0024-hotplug.md).
    pub fn see_off(&self) {
        if let Err(error) = look_again(&self.skel) {
            log::warn!("a CPU may not go offline: {error:#}");
        }
    }

    fn topology(&self) -> Result<&artis_topology> {
        let data = self.skel.maps.data_topology_data.as_ref();
        Ok(&data.context("the BPF object has no topology")?.topology)
    }

    fn write_partition(&mut self, kinds: &[u8], topology: &artis_topology) -> Result<()> {
        let policy = self.skel.maps.data_policy_data.as_mut();
        store_all(&mut policy.context("the BPF object has no policy")?.policy.cpu_kind, kinds);
        let data = self.skel.maps.data_topology_data.as_mut();
        let to = &mut data.context("the BPF object has no topology")?.topology;
        store_all(&mut to.group, &topology.group);
        store_all(&mut to.core, &topology.core);
        store_all(&mut to.capacity, &topology.capacity);
        Ok(())
    }
}

/// Writes the fields of all knobs, each at once, then the sequence number: who sees the new
/// number sees the new values.
fn store_policy(policy: &mut artis_policy, wanted: &artis_policy) {
    let mut wanted = *wanted;
    for knob in KNOBS {
        let value = (knob.word)(&mut wanted).load();
        (knob.word)(policy).store(value);
    }
    // SAFETY: aligned, and valid for as long as the exclusive borrow of `policy`.
    unsafe { AtomicU32::from_ptr(&mut policy.seq) }.store(wanted.seq, Ordering::Release);
}

/// Writes each element at once, as far as elements are words.
fn store_all<T: Copy>(to: &mut [T], from: &[T]) {
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: a valid exclusive reference; volatile, because BPF reads the memory meanwhile.
        unsafe { ptr::write_volatile(to, *from) };
    }
}

/// Has BPF take the two sets over from the policy, which ops.init needs.
///
/// BPF's allocator on PREEMPT_RT has nothing at first and is filled behind the scenes: -ENOMEM
/// means "ask again". There are several masks of each group and one of each CPU, and in the worst
/// case each takes a call of its own.
pub(super) fn set_partition(skel: &BpfSkel<'_>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let run = skel.progs.artis_set_partition.test_run(ProgramInput::default());
        let code = run.context("handing the partition to BPF")?.return_value.cast_signed();
        match code {
            0 => return Ok(()),
            _ if code == -(Errno::ENOMEM as i32) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(1));
            }
            _ => bail!("BPF did not take the partition: {}", Errno::from_raw(-code)),
        }
    }
}

/// Has all CPUs look again, and once more. No error for the caller: the new partition is in force,
/// whatever becomes of this.
fn look_twice(mut look: impl FnMut() -> Result<()>) {
    let twice = look().and_then(|()| {
        // a task that was queued by the old partition meanwhile is in its queue by then
        thread::sleep(Duration::from_millis(20));
        look()
    });
    if let Err(error) = twice {
        log::warn!("tasks that run or wait now may stay where they are for a while: {error:#}");
    }
}

/// Has every CPU look at what it runs and at what waits by the new partition.
fn look_again(skel: &BpfSkel<'_>) -> Result<()> {
    let run = skel.progs.artis_look_again.test_run(ProgramInput::default());
    let code = run.context("having the CPUs look again")?.return_value.cast_signed();
    if code != 0 {
        bail!("the CPUs do not look again: {}", Errno::from_raw(-code));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_fails_takes_back_no_partition() {
        for (fails_at, looks) in [(1, 1), (2, 2), (3, 2)] {
            let mut nr = 0;
            let () = look_twice(|| {
                nr += 1;
                if nr == fails_at { bail!("look {nr} fails") } else { Ok(()) }
            });
            assert_eq!(nr, looks, "the look {fails_at} fails");
        }
    }

    #[test]
    fn a_policy_is_stored_without_what_is_not_a_knob() {
        let mut policy = artis_policy { nr_cpus: 4, cpu_kind: [1; 1024], ..Default::default() };
        let mut wanted = artis_policy { seq: 3, poll_fds_max: 7, ..Default::default() };
        wanted.slice_nrt_ns = 1 << 40;
        wanted.predict_rule = 2;
        store_policy(&mut policy, &wanted);
        assert_eq!((policy.seq, policy.poll_fds_max, policy.predict_rule), (3, 7, 2));
        assert_eq!((policy.slice_nrt_ns, policy.nr_cpus, policy.cpu_kind[5]), (1 << 40, 4, 1));
    }
}
