// SPDX-License-Identifier: GPL-2.0-only
//! A periodic task that makes no endangering call: it sleeps until a time, computes for part of
//! its period, and tells how late it woke up, and how much of its computing was on RT CPUs.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use nix::sched::sched_getcpu;

use crate::cpus::Cpus;
use crate::work::monotonic_ns;
use crate::worker::{lock_memory, set_fifo, sleep_until};

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
    /// CPUs it binds itself to
    #[arg(long)]
    pub cpus: Option<Cpus>,
    /// SCHED_FIFO with this priority
    #[arg(long)]
    pub fifo: Option<i32>,
}

/// Begins of the lines with the median lateness and its 99th percentile, ns.
const MEDIAN: &str = "# Median Latency, ns:";
const P99: &str = "# 99 % Latency, ns:";
/// Begin of the line with the share of time on RT CPUs, percent.
const ON_RT: &str = "# On RT CPUs:";

/// Before anything is reported: whoever adopts tasks needs time to see it.
const SETTLES: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How late the wake-ups were, ns, in ascending order.
    late_ns: Vec<u64>,
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
    if let Some(cpus) = spec.cpus {
        cpus.bind(0)?;
    }
    if let Some(priority) = spec.fifo {
        set_fifo(0, Some(priority))?;
    }
    let period_ns = spec.period_us * 1000;
    let compute_ns = period_ns * spec.duty_pct / 100;
    // all room there will be, so that counting takes no memory and no call
    let room = usize::try_from(spec.wakeups)?;
    let mut report = Report { late_ns: vec![0; room], ..Report::default() };
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
            left -= 1;
            report.late_ns[left as usize] = woke_ns - next_ns;
        }
        // periods that are over are not made up for
        while next_ns + period_ns < now_ns {
            next_ns += period_ns;
        }
    }
    report.late_ns.sort_unstable();
    Ok(report)
}

impl Report {
    /// So many of a hundred wake-ups were no later, ns.
    fn percentile_ns(&self, pct: usize) -> u64 {
        let nth = (self.late_ns.len() * pct).div_ceil(100);
        self.late_ns.get(nth.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// As cyclictest's histogram of µs, and a line for each figure.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bins = BTreeMap::<u64, u64>::new();
        for late_ns in &self.late_ns {
            *bins.entry(late_ns / 1000).or_default() += 1;
        }
        for (us, wakeups) in bins {
            writeln!(f, "{us:06} {wakeups:06}")?;
        }
        writeln!(f, "# Max Latencies: {:05}", self.percentile_ns(100) / 1000)?;
        writeln!(f, "{MEDIAN} {}", self.percentile_ns(50))?;
        writeln!(f, "{P99} {}", self.percentile_ns(99))?;
        let permille = self.on_rt * 1000 / self.looks.max(1);
        write!(f, "{ON_RT} {}.{} %", permille / 10, permille % 10)
    }
}

/// What a periodic task in a process of its own told.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Half of its wake-ups were no later, ns.
    pub median_ns: u64,
    /// 99 % of them were no later, ns.
    pub p99_ns: u64,
    /// Share of its time on RT CPUs, 0 to 1.
    pub on_rt: f64,
}

/// Runs one in a process of its own.
pub fn told(spec: &Spec) -> Result<Told> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("periodic");
    command.arg(format!("--period-us={}", spec.period_us));
    command.arg(format!("--duty-pct={}", spec.duty_pct));
    command.arg(format!("--wakeups={}", spec.wakeups));
    command.arg(format!("--rt-cpus={}", spec.rt_cpus));
    command.args(spec.cpus.map(|cpus| format!("--cpus={cpus}")));
    command.args(spec.fifo.map(|priority| format!("--fifo={priority}")));
    let out = command.output()?;
    let text = String::from_utf8_lossy(&out.stdout);
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "a periodic task: {}\n{error}", out.status);
    let number = |begin: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(begin));
        line.and_then(|line| line.split_whitespace().next()).context(format!("no line {begin}"))
    };
    Ok(Told {
        median_ns: number(MEDIAN)?.parse()?,
        p99_ns: number(P99)?.parse()?,
        on_rt: number(ON_RT)?.parse::<f64>()? / 100.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wake_up_is_in_the_histogram() {
        let all = Cpus(u64::MAX);
        let mut spec = Spec {
            period_us: 500,
            duty_pct: 20,
            wakeups: 40,
            rt_cpus: all,
            cpus: None,
            fifo: None,
        };
        let report = run(&spec).expect("it runs");
        let late = report.late_ns.clone();
        assert!(late.len() == 40 && late.is_sorted() && late[0] > 0, "{late:?}");
        assert!(report.looks >= 40 && report.on_rt == report.looks, "{report:?}");
        assert_eq!([50, 99].map(|pct| report.percentile_ns(pct)), [late[19], late[39]]);
        let text = report.to_string();
        assert!(text.ends_with("# On RT CPUs: 100.0 %"), "{text}");
        let wakeups = text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok());
        assert_eq!(wakeups.sum::<u64>(), 40, "{text}");
        spec.rt_cpus = Cpus(0);
        assert_eq!(run(&spec).expect("it runs").on_rt, 0);
    }
}
