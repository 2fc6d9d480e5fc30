// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPUs. One word is enough: guests have few CPUs.

use std::fmt;
use std::fs;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// CPUs 0 to 63 as a bit mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpus(pub u64);

impl Cpus {
    /// The set of one CPU.
    #[must_use]
    pub fn one(cpu: u32) -> Self {
        Self(1 << cpu)
    }

    /// The CPUs that the kernel lists as online.
    pub fn online() -> Result<Self> {
        let path = "/sys/devices/system/cpu/online";
        fs::read_to_string(path).context(path)?.trim().parse()
    }

    /// The ids in rising order.
    pub fn iter(self) -> impl Iterator<Item = u32> + Clone {
        (0..64).filter(move |c| self.0 >> c & 1 == 1)
    }

    /// The lowest id.
    pub fn first(self) -> Result<u32> {
        self.iter().next().context("an empty set of CPUs")
    }

    /// The highest id.
    pub fn last(self) -> Result<u32> {
        self.iter().last().context("an empty set of CPUs")
    }

    /// Those that are in `self` but not in `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Binds thread `pid` (0: the caller) to these CPUs.
    pub fn bind(self, pid: i32) -> Result<()> {
        let mut set = CpuSet::new();
        for c in self.iter() {
            set.set(c as usize)?;
        }
        sched_setaffinity(Pid::from_raw(pid), &set)
            .with_context(|| format!("bind task {pid} to CPUs {self}"))
    }
}

impl FromStr for Cpus {
    type Err = anyhow::Error;

    fn from_str(s: &str) -> Result<Self> {
        let mut mask = 0u64;
        for part in s.split(',') {
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            let (a, b): (u32, u32) = (
                a.parse().with_context(|| format!("'{s}' is no list of CPUs"))?,
                b.parse().with_context(|| format!("'{s}' is no list of CPUs"))?,
            );
            ensure!(a <= b && b < 64, "'{s}': CPUs 0 to 63, low-high");
            for c in a..=b {
                mask |= 1 << c;
            }
        }
        if mask == 0 {
            bail!("'{s}' names no CPU");
        }
        Ok(Self(mask))
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.iter().map(|c| c.to_string()).collect();
        f.write_str(&ids.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::Cpus;

    #[test]
    fn lists() {
        assert_eq!("2-3,6".parse::<Cpus>().expect("a list"), Cpus(0b100_1100));
        assert_eq!(Cpus(0b1100).to_string(), "2,3");
        assert!("".parse::<Cpus>().is_err());
        assert!("3-2".parse::<Cpus>().is_err());
        assert!("64".parse::<Cpus>().is_err());
        assert_eq!(Cpus(0b1111).without(Cpus(0b1100)), Cpus(0b11));
    }
}
