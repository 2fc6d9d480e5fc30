// SPDX-License-Identifier: GPL-2.0-only
//! /proc/stat: where each CPU's time went, in ticks of USER_HZ.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

/// One CPU's ticks since boot, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// Idle, waiting for input or output included.
    pub idle: u64,
    /// Interrupts and soft interrupts.
    pub irq: u64,
    /// Taken by a hypervisor for others.
    pub steal: u64,
}

/// All online CPUs at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat(pub BTreeMap<u32, Ticks>);

impl CpuStat {
    /// # Errors
    /// When /proc/stat cannot be read.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let cpu = |line: &str| {
            let mut words = line.strip_prefix("cpu")?.split_whitespace();
            let cpu = words.next()?.parse().ok()?;
            // user nice system idle iowait irq softirq steal
            let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
            let at = |i: usize| ticks.get(i).copied().unwrap_or(0);
            Some((cpu, Ticks { idle: at(3) + at(4), irq: at(5) + at(6), steal: at(7) }))
        };
        // the line of all CPUs has no number, and its first word would be taken for one
        let lines = text.lines().filter(|line| !line.starts_with("cpu "));
        Self(lines.filter_map(cpu).collect())
    }

    /// What came since `earlier`, for the CPUs that were online at both moments. The
    /// kernel's idle time may step back a little.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let since = |(cpu, late): (&u32, &Ticks)| {
            let early = earlier.0.get(cpu)?;
            let ticks = Ticks {
                idle: late.idle.saturating_sub(early.idle),
                irq: late.irq.saturating_sub(early.irq),
                steal: late.steal.saturating_sub(early.steal),
            };
            Some((*cpu, ticks))
        };
        Self(self.0.iter().filter_map(since).collect())
    }
}

/// Length of a tick of /proc/stat, ns: 10 ms nearly everywhere.
#[must_use]
pub fn tick_ns() -> u64 {
    let hz = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
    1_000_000_000 / u64::try_from(hz).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLY: &str = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 40 5 6 7 8 0 0\n\
                         cpu2 0 0 0 1 0 0 0 0 0 0\nintr 5\n";
    const LATE: &str = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 2 3 50 5 8 8 9 0 0\n\
                        cpu3 0 0 0 1 0 0 0 0 0 0\nintr 5\n";

    #[test]
    fn takes_each_cpu_and_not_the_sum() {
        let stat = CpuStat::parse(EARLY);
        assert_eq!(stat.0.keys().copied().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(stat.0[&0], Ticks { idle: 45, irq: 13, steal: 8 });
    }

    #[test]
    fn counts_what_came_since_on_cpus_that_stayed() {
        let since = CpuStat::parse(LATE).since(&CpuStat::parse(EARLY));
        assert_eq!(since.0.len(), 1);
        assert_eq!(since.0[&0], Ticks { idle: 10, irq: 3, steal: 1 });
    }
}
