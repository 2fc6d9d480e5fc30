// SPDX-License-Identifier: GPL-2.0-only
//! A task's own accounts in /proc: its time and its switches.

use std::fs;

use anyhow::{Context, Result};

/// At one moment; the differences of two count. Exact while the task is off its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskStat {
    /// On a CPU, ns.
    pub cpu_ns: u64,
    /// Runnable but not on a CPU, ns.
    pub wait_ns: u64,
    /// Gave the CPU up by itself.
    pub voluntary: u64,
    /// Was preempted.
    pub involuntary: u64,
}

impl TaskStat {
    /// Reads /proc/`pid`/schedstat and status; a zombie's can still be read.
    ///
    /// # Errors
    /// When the task is gone, or the kernel does not count (`CONFIG_SCHED_INFO`).
    pub fn read(pid: i32) -> Result<Self> {
        let schedstat = fs::read_to_string(format!("/proc/{pid}/schedstat"))
            .with_context(|| format!("cannot read /proc/{pid}/schedstat"))?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("cannot read /proc/{pid}/status"))?;
        Self::parse(&schedstat, &status)
            .with_context(|| format!("/proc/{pid}/schedstat or status has an unknown form"))
    }

    fn parse(schedstat: &str, status: &str) -> Option<Self> {
        let mut times = schedstat.split_whitespace().map(str::parse);
        let switches =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok();
        Some(Self {
            cpu_ns: times.next()?.ok()?,
            wait_ns: times.next()?.ok()?,
            voluntary: switches("voluntary_ctxt_switches:")?,
            involuntary: switches("nonvoluntary_ctxt_switches:")?,
        })
    }

    /// What happened since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            voluntary: self.voluntary.saturating_sub(earlier.voluntary),
            involuntary: self.involuntary.saturating_sub(earlier.involuntary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_files() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        let stat = TaskStat::parse("120 34 5\n", status).expect("known form");
        assert_eq!(stat, TaskStat { cpu_ns: 120, wait_ns: 34, voluntary: 7, involuntary: 3 });
        assert_eq!(TaskStat::parse("120 34 5\n", "Name:\tx\n"), None);
        assert_eq!(TaskStat::parse("", status), None);
    }

    #[test]
    fn only_what_came_since_counts() {
        let early = TaskStat { cpu_ns: 10, wait_ns: 4, voluntary: 1, involuntary: 2 };
        let late = TaskStat { cpu_ns: 110, wait_ns: 4, voluntary: 3, involuntary: 2 };
        let since = TaskStat { cpu_ns: 100, wait_ns: 0, voluntary: 2, involuntary: 0 };
        assert_eq!(late.since(early), since);
    }
}
