// SPDX-License-Identifier: GPL-2.0-only
//! One task's state as BPF keeps it (src/bpf/abi/task.h), made readable.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::plain::Plain;
use crate::abi::artis_task;
use crate::model::{TaskReading, cause_name};

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

/// The weight with which the task of these bytes is counted now; 100 is one of nice 0.
pub fn counted_weight(bytes: &[u8]) -> u64 {
    // the lower half of the word (src/bpf/ledger/seat.bpf.h)
    artis_task::of_bytes(bytes).map_or(0, |task| task.counted & u64::from(u32::MAX))
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
        call_table: task.call_table.into(),
        by_hand: task.by_hand != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::bindings::{artis_cause, artis_causes_ARTIS_CAUSE_FAULT as FAULT};
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
        let cause =
            |cause, evictions| artis_cause { cause, evictions, attempts: 0, pad: 0, last_ns: 0 };
        task.stats.causes[0] = cause(Sysno::openat as u32 + 1, 7);
        task.stats.causes[1] = cause(FAULT, 2);
        task.stats.causes[2] = cause(100_000, 1);
        let expected = [("call openat", 7), ("fault", 2), ("call 99999", 1), ("other", 3)];
        let reading = reading(&bytes(&task)).expect("of the right size");
        assert_eq!(reading.evictions, expected.map(|(k, n)| (k.to_owned(), n)).into());
    }

    #[test]
    fn the_treatment_is_told() {
        // SAFETY: the struct is plain integers: all zeroes are valid.
        let mut task: artis_task = unsafe { std::mem::zeroed() };
        let told = |task: &artis_task| reading(&bytes(task)).expect("of the right size");
        assert_eq!(told(&task), TaskReading { rt_cpus: true, ..TaskReading::default() });
        (task.rt1, task.rt1_rr, task.rt_forbidden) = (98, 1, 1);
        (task.call_table, task.by_hand) = (7, 1);
        let set = TaskReading {
            rt1: 98,
            rt1_rr: true,
            call_table: 7,
            by_hand: true,
            ..Default::default()
        };
        assert_eq!(told(&task), set);
    }

    #[test]
    fn what_is_not_a_task_is_refused() {
        assert_eq!(reading(&[0; 3]), None);
        assert_eq!(counted_weight(&[1; 3]), 0);
    }

    #[test]
    fn who_sleeps_has_no_weight() {
        // SAFETY: the struct is plain integers: all zeroes are valid.
        let mut task: artis_task = unsafe { std::mem::zeroed() };
        assert_eq!(counted_weight(&bytes(&task)), 0);
        task.counted = 1_025 << 32 | 8_870;
        assert_eq!(counted_weight(&bytes(&task)), 8_870);
    }

    #[test]
    fn a_thread_has_a_handle_and_a_dead_one_has_none() {
        assert!(pidfd(std::process::id()).is_some());
        assert!(pidfd(0).is_none());
        let tid = std::thread::spawn(rustix::thread::gettid).join().expect("a thread");
        assert!(pidfd(tid.as_raw_nonzero().get().unsigned_abs()).is_none());
    }
}
