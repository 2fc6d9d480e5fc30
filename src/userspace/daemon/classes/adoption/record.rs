// SPDX-License-Identifier: GPL-2.0-only
//! What a record of the kernel says (src/bpf/abi/abi.h).

use super::attr::Was;
use crate::abi::bindings as abi;
use crate::abi::{artis_aim, artis_change, artis_keeper};
use crate::config::CpuSet;
use crate::daemon::classes::facts::TaskId;
use crate::daemon::plain::Plain;

// SAFETY: u32 and u64 only; the u64 are aligned by themselves.
unsafe impl Plain for artis_change {}
// SAFETY: four u32.
unsafe impl Plain for artis_keeper {}
// SAFETY: u32, and a u64 that is aligned by itself.
unsafe impl Plain for artis_aim {}

/// What was changed of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was adopted, and was this.
    Adopted(Was),
    /// It was bound to some of the CPUs that it might run on.
    Confined {
        /// All of these.
        from: CpuSet,
        /// How many it was bound to.
        nr_to: usize,
    },
}

/// A record of this task that says nothing yet.
pub fn of(id: TaskId) -> artis_change {
    artis_change {
        tid: id.tid.cast_unsigned(),
        kind: 0,
        start_ticks: id.start_ticks,
        policy: 0,
        priority: 0,
        reset_on_fork: 0,
        nr_to: 0,
        from: words(&CpuSet::default()),
    }
}

/// What a record says of a task that was adopted; `None`: it was no real-time task.
pub fn was(record: &artis_change) -> Option<Was> {
    Was::new(record.policy, record.priority, record.reset_on_fork != 0)
}

/// What a record says; `None`: of no known kind.
pub fn change(record: &artis_change) -> Option<Change> {
    match record.kind {
        abi::artis_change_kind_ARTIS_CHANGE_ADOPTED => was(record).map(Change::Adopted),
        abi::artis_change_kind_ARTIS_CHANGE_CONFINED => {
            Some(Change::Confined { from: cpus(&record.from), nr_to: record.nr_to as usize })
        }
        _ => None,
    }
}

const WORDS: usize = abi::artis_change_limits_ARTIS_CPU_WORDS as usize;

/// The CPUs as a record has them.
pub fn words(cpus: &CpuSet) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for cpu in cpus.iter() {
        if let Some(word) = words.get_mut(cpu / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    words
}

fn cpus(words: &[u64; WORDS]) -> CpuSet {
    let has = |cpu: &usize| words.get(cpu / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1);
    (0..WORDS * 64).filter(has).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::classes::facts::{SCHED_FIFO, SCHED_RR};

    const ID: TaskId = TaskId { tid: 7, start_ticks: 8 };

    #[test]
    fn a_record_says_what_was_changed() {
        assert_eq!(change(&of(ID)), None, "nothing yet");
        for (policy, priority, reset_on_fork) in [(SCHED_FIFO, 1, false), (SCHED_RR, 99, true)] {
            let kind = abi::artis_change_kind_ARTIS_CHANGE_ADOPTED;
            let mut record = artis_change { kind, policy, priority, ..of(ID) };
            record.reset_on_fork = reset_on_fork.into();
            let expected = Was::new(policy, priority, reset_on_fork).map(Change::Adopted);
            assert!(expected.is_some() && change(&record) == expected);
            record.policy = 0;
            assert_eq!(change(&record), None, "it was no real-time task");
        }
    }

    #[test]
    fn cpus_are_kept_up_to_the_last() {
        for list in ["0", "63-64", "0-3,1023", "0-1023"] {
            let set: CpuSet = list.parse().expect("a list");
            assert_eq!(cpus(&words(&set)), set, "{list}");
        }
        let none = CpuSet::default();
        assert_eq!(cpus(&words(&none)), none);
    }
}
