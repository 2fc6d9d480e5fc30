// SPDX-License-Identifier: GPL-2.0-only
//! Scenarios that fail now and then because of a known fault of the scheduler. Only these are
//! tried again, and the sum of a run names each that needed it. An entry goes with its fault.

/// A scenario that a known fault fails.
#[derive(Debug)]
pub struct Known {
    /// The scenario.
    pub scenario: &'static str,
    /// The kernels on which it was seen to fail; none: all.
    pub kernels: &'static [&'static str],
    /// The fault.
    pub point: &'static str,
    /// Since when it is listed, as YYYY-MM-DD.
    pub since: &'static str,
    /// How often it failed, of how many runs.
    pub failed: (u32, u32),
}

impl Known {
    /// So often a listed scenario is tried.
    pub const TRIES: u32 = 3;
    /// A rate is of at least so many runs.
    pub const RUNS_MIN: u32 = 20;
}

/// The list.
pub const KNOWN: &[Known] = &[
    // A real-time task took the CPU of one that ran the scheduler's own program at the end of a
    // page fault, fexit/handle_mm_fault: it cannot migrate meanwhile, and waits for the hog's end.
    Known {
        scenario: "fifo_hog_nrt",
        kernels: &["6.18"],
        point: "kernel-side.md C, a page fault could be hooked by a program on PAGE_FAULTS",
        since: "2026-11-23",
        failed: (1, 20),
    },
];

/// Is the failure of this scenario there a known one?
#[must_use]
pub fn known(kernel: &str, scenario: &str) -> Option<&'static Known> {
    let here = |k: &&Known| k.kernels.is_empty() || k.kernels.contains(&kernel);
    KNOWN.iter().filter(here).find(|k| k.scenario == scenario)
}

#[cfg(test)]
mod tests {
    use super::{KNOWN, Known};
    use crate::scenarios::find;

    #[test]
    fn each_entry_is_of_a_scenario_and_measured() {
        for known in KNOWN {
            assert!(find(known.scenario).is_some(), "{known:?}");
            let (failed, runs) = known.failed;
            assert!(failed > 0 && failed < runs && runs >= Known::RUNS_MIN, "{known:?}");
            assert_eq!(known.since.len(), "2026-11-22".len(), "{known:?}");
            assert!(known.point.contains(".md "), "not a point of a document: {known:?}");
        }
    }
}
