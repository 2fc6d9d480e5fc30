// SPDX-License-Identifier: GPL-2.0-only
//! How much of the host other programs used meanwhile.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::Result;
use procfs::process::{Stat, all_processes};
use procfs::{CpuTime, CurrentSI, KernelStats};

/// A share of the host's CPU time that other programs may use, percent. Above it a comparison of
/// times shows nothing: a guest has four virtual CPUs, and its host two.
pub const FOREIGN_MAX_PCT: f64 = 20.0;

/// Counts from when it was made.
pub struct Meter {
    parent: i32,
    began: Instant,
    busy_ticks: u64,
    own_ticks: u64,
}

impl Meter {
    /// This process, and all guests that it has booted, are not foreign.
    pub fn begin() -> Result<Self> {
        Self::of(std::process::id().cast_signed())
    }

    /// Foreign is what is neither `parent` nor of a process group that a child of it leads.
    fn of(parent: i32) -> Result<Self> {
        Ok(Self {
            parent,
            began: Instant::now(),
            busy_ticks: busy_ticks()?,
            own_ticks: own_ticks(parent)?,
        })
    }

    /// What other programs, and other guests of the host's own host, used of all CPUs since then,
    /// percent.
    pub fn foreign_pct(&self) -> Result<f64> {
        let cpus = KernelStats::current()?.cpu_time.len();
        let all = self.began.elapsed().as_secs_f64() * procfs::ticks_per_second() as f64;
        let own = own_ticks(self.parent)?.saturating_sub(self.own_ticks);
        let foreign = (busy_ticks()? - self.busy_ticks).saturating_sub(own);
        Ok(foreign as f64 * 100.0 / (all * cpus as f64).max(1.0))
    }
}

/// All ticks in which a CPU was not idle, but for those of programs with a nice value above 0: they
/// give way to a guest, as the lints do that run beside them.
fn busy_ticks() -> Result<u64> {
    let CpuTime { user, system, irq, softirq, steal, .. } = KernelStats::current()?.total;
    let more = [irq, softirq, steal].into_iter().flatten().sum::<u64>();
    Ok(user + system + more)
}

fn own_ticks(parent: i32) -> Result<u64> {
    // one that ends meanwhile has no stat
    let all: Vec<Stat> = all_processes()?.flatten().filter_map(|p| p.stat().ok()).collect();
    let leads = |s: &&Stat| s.ppid == parent && s.pid == s.pgrp;
    let groups: BTreeSet<i32> = all.iter().filter(leads).map(|s| s.pid).collect();
    let own = all.iter().filter(|s| s.pid == parent || groups.contains(&s.pgrp));
    // with those that ended and were waited for, else a guest that ends takes its time away
    let ticks = |s: &Stat| s.utime + s.stime + (s.cutime + s.cstime).cast_unsigned();
    Ok(own.map(ticks).sum())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::Duration;

    use super::Meter;

    /// Other tests run beside this one: only what a group of its own adds can be told.
    #[test]
    fn own_work_is_not_foreign() {
        const NO_PROCESS: i32 = -1;
        let nothing = Meter::of(NO_PROCESS).expect("a meter");
        let mut shell = Command::new("sh");
        let mut load =
            shell.args(["-c", "while :; do :; done"]).process_group(0).spawn().expect("a load");
        let own = Meter::begin().expect("a meter");
        sleep(Duration::from_millis(500));
        let (all, foreign) = (nothing.foreign_pct().expect("all"), own.foreign_pct().expect("own"));
        load.kill().and_then(|()| load.wait()).expect("the load ends");
        assert!(foreign < all, "{foreign} % foreign of {all} %");
    }
}
