// SPDX-License-Identifier: GPL-2.0-only
//! A periodic task that makes no endangering call: it sleeps until a time, computes for part of
//! its period, and tells how late it woke up, and how much of its computing was on RT CPUs.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use nix::sched::sched_getcpu;

use crate::cpus::Cpus;
use crate::work::{monotonic_ns, sleep_until};
use crate::worker::{lock_memory, set_fifo};

/// What it does.
#[derive(Args, Clone, Debug)]
pub struct Spec {
    /// Period
    #[arg(long, default_value_t = 1000)]
    pub period_us: u64,
    /// Part of the period for which it computes
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=90))]
    pub duty_pct: u64,
    /// So many periods are reported
    #[arg(long, default_value_t = 5_000)]
    pub wakeups: u64,
    /// The RT CPUs
    #[arg(long, default_value = "2-3")]
    pub rt_cpus: Cpus,
    /// SCHED_FIFO with this priority
    #[arg(long)]
    pub fifo: Option<i32>,
}

/// Begin of the line with the median lateness, µs.
pub const MEDIAN: &str = "# Median Latencies:";
/// Begin of the line with the share of time on RT CPUs, percent.
pub const ON_RT: &str = "# On RT CPUs:";

/// Before anything is reported: whoever adopts tasks needs time to see it.
const SETTLES: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Wake-ups by how late they were, µs.
    late_us: BTreeMap<u64, u64>,
    /// Looks at the CPU while it computed, and those that saw an RT CPU.
    looks: u64,
    on_rt: u64,
}

/// Runs for that many periods.
///
/// # Errors
/// When memory cannot be locked, or the policy cannot be had.
pub fn run(spec: &Spec) -> Result<Report> {
    ensure!(spec.period_us > 0, "a period of 0 µs");
    lock_memory()?;
    if let Some(priority) = spec.fifo {
        set_fifo(0, Some(priority))?;
    }
    let period_ns = spec.period_us * 1000;
    let compute_ns = period_ns * spec.duty_pct / 100;
    // all bins there will be, so that counting takes no memory and no call
    let mut bins = vec![0u64; 1 << 16];
    let mut report = Report::default();
    let mut next_ns = monotonic_ns()?;
    let begins_ns = next_ns + u64::try_from(SETTLES.as_nanos())?;
    let mut left = spec.wakeups;
    while left > 0 {
        next_ns += period_ns;
        sleep_until(next_ns)?;
        let woke_ns = monotonic_ns()?;
        let mut now_ns = woke_ns;
        let counts = woke_ns >= begins_ns;
        while now_ns < woke_ns + compute_ns {
            let cpu = sched_getcpu()?;
            if counts {
                report.looks += 1;
                report.on_rt += spec.rt_cpus.0 >> cpu & 1;
            }
            now_ns = monotonic_ns()?;
        }
        if counts {
            let late_us = (woke_ns - next_ns) / 1000;
            let bin = (late_us as usize).min(bins.len() - 1);
            bins[bin] += 1;
            left -= 1;
        }
        // periods that are over are not made up for
        while next_ns + period_ns < now_ns {
            next_ns += period_ns;
        }
    }
    report.late_us = (0..).zip(bins).filter(|(_, wakeups)| *wakeups > 0).collect();
    Ok(report)
}

impl Report {
    /// Half of the wake-ups were no later.
    fn median_us(&self) -> u64 {
        let all: u64 = self.late_us.values().sum();
        let mut seen = 0;
        let mut upwards = self.late_us.iter();
        let median = upwards.find(|(_, wakeups)| {
            seen += **wakeups;
            seen * 2 >= all
        });
        median.map_or(0, |(us, _)| *us)
    }
}

/// As cyclictest's histogram, and a line for the CPUs.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (us, wakeups) in &self.late_us {
            writeln!(f, "{us:06} {wakeups:06}")?;
        }
        let max = self.late_us.last_key_value().map_or(0, |(us, _)| *us);
        writeln!(f, "# Max Latencies: {max:05}")?;
        writeln!(f, "{MEDIAN} {:05}", self.median_us())?;
        let permille = self.on_rt * 1000 / self.looks.max(1);
        write!(f, "{ON_RT} {}.{} %", permille / 10, permille % 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wake_up_is_in_the_histogram() {
        let all = Cpus(u64::MAX);
        let spec = Spec { period_us: 500, duty_pct: 20, wakeups: 40, rt_cpus: all, fifo: None };
        let report = run(&spec).expect("it runs");
        assert_eq!(report.late_us.values().sum::<u64>(), 40);
        assert!(report.looks >= 40 && report.on_rt == report.looks, "{report:?}");
        let median = report.median_us();
        let no_later: u64 = report.late_us.range(..=median).map(|(_, wakeups)| wakeups).sum();
        let sooner: u64 = report.late_us.range(..median).map(|(_, wakeups)| wakeups).sum();
        assert!(no_later >= 20 && sooner < 20, "{median} of {report:?}");
        assert!(report.to_string().ends_with("# On RT CPUs: 100.0 %"), "{report}");
    }
}
