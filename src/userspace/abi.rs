// SPDX-License-Identifier: GPL-2.0-only
//! What both languages read: bindgen's view of src/bpf/abi, and the skeleton.
//!
//! bindgen and the skeleton generator each make their own Rust type of a C
//! struct. The assertions below stop the build when the two drift apart.

use serde::{Deserialize, Serialize};

/// Types and constants of src/bpf/abi/abi.h, as bindgen sees them.
#[allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
pub mod bindings {
    include!(concat!(env!("OUT_DIR"), "/abi.rs"));
}

/// The skeleton of src/bpf/main.bpf.c.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, clippy::undocumented_unsafe_blocks)]
pub mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

pub use bindings::{artis_aim, artis_change, artis_keeper, artis_news, artis_task};
pub use skel::types::{artis_cpu, artis_policy, artis_set_class, artis_topology};

/// Highest CPU id that the scheduler handles, plus one.
pub const MAX_CPUS: usize = bindings::artis_limits_ARTIS_MAX_CPUS as usize;
/// System-call numbers from here on have no class of their own: they endanger.
pub const NR_CALLS: usize = bindings::artis_limits_ARTIS_NR_CALLS as usize;
/// Groups of CPUs that the scheduler tells apart.
pub const MAX_GROUPS: usize = bindings::artis_limits_ARTIS_MAX_GROUPS as usize;
/// Number of event counters of each CPU.
pub const NR_STATS: usize = bindings::artis_stat_ARTIS_NR_STATS as usize;

/// The object file that the skeleton embeds.
pub const BPF_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"));
/// The object file of src/bpf/change.bpf.c.
pub const CHANGE_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/change.bpf.o"));

// the skeleton's types are used throughout; bindgen lends the constants
const _: () = {
    assert!(size_of::<artis_cpu>() == size_of::<bindings::artis_cpu>());
    assert!(size_of::<artis_policy>() == size_of::<bindings::artis_policy>());
    assert!(size_of::<artis_topology>() == size_of::<bindings::artis_topology>());
    assert!(size_of::<skel::types::bss_cpus>() == MAX_CPUS * size_of::<artis_cpu>());
    assert!(size_of::<skel::types::data_policy>() == size_of::<artis_policy>());
    assert!(size_of::<skel::types::data_topology>() == size_of::<artis_topology>());
};

/// Which of the two sets a CPU is in; the values of `enum artis_cpu_kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum CpuKind {
    /// Not online when the daemon looked.
    #[default]
    Absent = bindings::artis_cpu_kind_ARTIS_CPU_ABSENT as u8,
    /// May run kernel work of any task.
    Nrt = bindings::artis_cpu_kind_ARTIS_CPU_NRT as u8,
    /// Kept clear of kernel work by anyone but hard real-time tasks.
    Rt = bindings::artis_cpu_kind_ARTIS_CPU_RT as u8,
}

/// The values of `enum artis_call_class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CallClass {
    /// An attempt: on an RT CPU it causes an eviction.
    Endangering = bindings::artis_call_class_ARTIS_CALL_ENDANGERING as u8,
    /// Short and bounded: no attempt.
    Harmless = bindings::artis_call_class_ARTIS_CALL_HARMLESS as u8,
    /// Bounded set-up, then sleep: no attempt.
    Sleeping = bindings::artis_call_class_ARTIS_CALL_SLEEPING as u8,
    /// futex(2): sleeping for its waiting operations.
    SleepingFutex = bindings::artis_call_class_ARTIS_CALL_SLEEPING_FUTEX as u8,
    /// poll(2): sleeping for few descriptors.
    SleepingPoll = bindings::artis_call_class_ARTIS_CALL_SLEEPING_POLL as u8,
    /// epoll_wait(2): sleeping for few events.
    SleepingEpoll = bindings::artis_call_class_ARTIS_CALL_SLEEPING_EPOLL as u8,
    /// clock_gettime and clock_getres: harmless for the kernel's own clocks, else endangering.
    HarmlessClock = bindings::artis_call_class_ARTIS_CALL_HARMLESS_CLOCK as u8,
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::bindings::artis_cpu;

    /// What others write shares no cache line with what a CPU reads on the way of a real-time task.
    #[test]
    fn the_lines_of_a_cpu_are_split_by_writer() {
        let starts = [
            offset_of!(artis_cpu, curr_order),
            offset_of!(artis_cpu, own),
            offset_of!(artis_cpu, rt),
        ];
        assert!(starts.is_sorted() && starts.iter().all(|at| at % 64 == 0), "{starts:?}");
        assert_eq!((align_of::<artis_cpu>(), size_of::<artis_cpu>() % 64), (64, 0));
    }
}
