// SPDX-License-Identifier: GPL-2.0-only
//! One task's state as BPF keeps it (src/bpf/abi/task.h), made readable.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::plain::Plain;
use crate::abi::{artis_task, bindings as abi};
use crate::model::{CpuReading, TaskReading, cause_name};

/// PIDFD_THREAD, which is O_EXCL (include/uapi/linux/pidfd.h, Linux 6.9): any thread, not
/// only the first of its process.
const PIDFD_THREAD: PidfdFlags = PidfdFlags::from_bits_retain(nix::libc::O_EXCL.cast_unsigned());

/// A handle of the thread; `None`: there is none.
pub fn pidfd(tid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(tid).ok()?)?;
    pidfd_open(pid, PIDFD_THREAD).ok()
}

// SAFETY: integers, with padding fields of its own where C would pad.
unsafe impl Plain for artis_task {}

/// Takes the weight of the task of these bytes off where it is counted now.
pub fn leave_out(bytes: &[u8], cpus: &mut [CpuReading]) {
    let Some(task) = artis_task::of_bytes(bytes) else { return };
    let place = usize::from(task.where_);
    for cpu in cpus {
        let weight = match task.queue.into() {
            abi::artis_queue_ARTIS_QUEUE_OWN if cpu.id == place => &mut cpu.own_weight,
            abi::artis_queue_ARTIS_QUEUE_BOUND if cpu.group == place => &mut cpu.bound_weight,
            abi::artis_queue_ARTIS_QUEUE_CALM if cpu.group == place => &mut cpu.calm_weight,
            _ => continue,
        };
        *weight = weight.saturating_sub(task.counted.into());
    }
}

/// Makes a reading of the bytes of a `struct artis_task`; `None`: not of its size.
pub fn reading(bytes: &[u8]) -> Option<TaskReading> {
    let task = artis_task::of_bytes(bytes)?;
    let mut evictions: BTreeMap<_, _> = task
        .stats
        .causes
        .iter()
        .filter(|cause| cause.cause != 0 && cause.evictions != 0)
        .map(|cause| (cause_name(cause.cause), u64::from(cause.evictions)))
        .collect();
    if task.stats.evictions_other > 0 {
        evictions.insert("other".into(), task.stats.evictions_other.into());
    }
    Some(TaskReading {
        evictions,
        rt1: task.rt1.into(),
        rt1_rr: task.rt1_rr != 0,
        rt_cpus: task.rt_forbidden == 0,
        by_hand: task.by_hand != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::bindings::{
        artis_cause, artis_causes_ARTIS_CAUSE_FAULT as FAULT,
        artis_causes_ARTIS_CAUSE_SIGNAL as SIGNAL,
    };
    use syscalls::Sysno;

    fn bytes(task: &artis_task) -> Vec<u8> {
        // SAFETY: the struct is plain integers without padding, and outlives the copy.
        unsafe {
            std::slice::from_raw_parts(
                std::ptr::from_ref(task).cast::<u8>(),
                size_of::<artis_task>(),
            )
        }
        .to_vec()
    }

    #[test]
    fn causes_have_names() {
        // SAFETY: the struct is plain integers: all zeroes are valid.
        let mut task: artis_task = unsafe { std::mem::zeroed() };
        task.stats.evictions_other = 3;
        let cause = |cause, evictions| artis_cause { cause, evictions, attempts: 0 };
        task.stats.causes[0] = cause(Sysno::openat as u32 + 1, 7);
        task.stats.causes[1] = cause(FAULT, 2);
        task.stats.causes[2] = cause(100_000, 1);
        task.stats.causes[3] = cause(SIGNAL, 1);
        let expected =
            [("call openat", 7), ("fault", 2), ("call 99999", 1), ("signal", 1), ("other", 3)];
        let reading = reading(&bytes(&task)).expect("of the right size");
        assert_eq!(reading.evictions, expected.map(|(k, n)| (k.to_owned(), n)).into());
    }

    #[test]
    fn the_treatment_is_told() {
        // SAFETY: the struct is plain integers: all zeroes are valid.
        let mut task: artis_task = unsafe { std::mem::zeroed() };
        let told = |task: &artis_task| reading(&bytes(task)).expect("of the right size");
        assert_eq!(told(&task), TaskReading { rt_cpus: true, ..TaskReading::default() });
        (task.rt1, task.rt1_rr, task.rt_forbidden, task.by_hand) = (98, 1, 1, 1);
        let set = TaskReading { rt1: 98, rt1_rr: true, by_hand: true, ..Default::default() };
        assert_eq!(told(&task), set);
    }

    #[test]
    fn what_is_not_a_task_is_refused() {
        assert_eq!(reading(&[0; 3]), None);
    }

    #[test]
    fn a_task_is_left_out_where_it_is_counted() {
        let cpu = |id, group| CpuReading {
            id,
            group,
            own_weight: 900,
            bound_weight: 900,
            calm_weight: 900,
            ..CpuReading::default()
        };
        // SAFETY: the struct is plain integers: all zeroes are valid.
        let mut task: artis_task = unsafe { std::mem::zeroed() };
        (task.counted, task.where_) = (800, 1);
        let mut weights = |queue: abi::artis_queue| {
            task.queue = queue as u8;
            let mut cpus = [cpu(0, 1), cpu(1, 0)];
            leave_out(&bytes(&task), &mut cpus);
            cpus.map(|cpu| [cpu.own_weight, cpu.bound_weight, cpu.calm_weight])
        };
        let all = [900; 3];
        assert_eq!(weights(abi::artis_queue_ARTIS_QUEUE_OWN), [all, [100, 900, 900]]);
        assert_eq!(weights(abi::artis_queue_ARTIS_QUEUE_BOUND), [[900, 100, 900], all]);
        assert_eq!(weights(abi::artis_queue_ARTIS_QUEUE_CALM), [[900, 900, 100], all]);
    }

    #[test]
    fn a_thread_has_a_handle_and_a_dead_one_has_none() {
        assert!(pidfd(std::process::id()).is_some());
        assert!(pidfd(0).is_none());
        let tid = std::thread::spawn(rustix::thread::gettid).join().expect("a thread");
        assert!(pidfd(tid.as_raw_nonzero().get().unsigned_abs()).is_none());
    }
}
