// SPDX-License-Identifier: GPL-2.0-only
//! Times as the observers' BPF programs add them up (observer/times.h), and the way that
//! those observers are asked for them.

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};

#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod intf {
    // of moves.h, which has it from times.h
    include!(concat!(env!("OUT_DIR"), "/moves_intf.rs"));
}

const BUCKETS: usize = intf::times_limits_TIMES_BUCKETS as usize;

/// Some times and their histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// How many.
    pub times: u64,
    /// All together, ns.
    pub sum_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    buckets: Vec<u64>,
}

impl Default for Times {
    fn default() -> Self {
        Self { times: 0, sum_ns: 0, max_ns: 0, buckets: vec![0; BUCKETS] }
    }
}

impl Times {
    /// The bytes of struct times.
    pub fn parse(b: &[u8]) -> Result<Self> {
        ensure!(b.len() == size_of::<intf::times>(), "times of another size");
        let buckets = (0..BUCKETS).map(|i| word(b, 24 + 4 * i).map(u64::from));
        Ok(Self {
            times: long(b, 0)?,
            sum_ns: long(b, 8)?,
            max_ns: long(b, 16)?,
            buckets: buckets.collect::<Result<_>>()?,
        })
    }

    /// As a program counted them; `buckets` of its histogram.
    #[must_use]
    pub fn of(times: u64, sum_ns: u64, max_ns: u64, buckets: &[u32]) -> Self {
        Self { times, sum_ns, max_ns, buckets: buckets.iter().copied().map(u64::from).collect() }
    }

    /// What `share` (0 to 1) of them did not exceed, ns: the upper end of a bucket of the
    /// histogram, so up to a quarter too much.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let mut below = 0;
        for (i, n) in self.buckets.iter().enumerate() {
            below += n;
            if below as f64 >= share * self.times as f64 {
                return last_of_bucket(i).min(self.max_ns);
            }
        }
        self.max_ns
    }

    /// How many were not longer than `ns`, a bucket of the histogram counted as a whole.
    #[must_use]
    pub fn up_to(&self, ns: u64) -> u64 {
        self.buckets
            .iter()
            .enumerate()
            .filter(|(i, _)| first_of_bucket(*i) <= ns)
            .map(|b| b.1)
            .sum()
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        self.times += other.times;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (sum, n) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += n;
        }
    }
}

/// Tab-separated, for awk: times, sum, median, 99 %, maximum (ns).
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, most) = (self.quantile_ns(0.5), self.quantile_ns(0.99));
        write!(f, "{}\t{}\t{median}\t{most}\t{}", self.times, self.sum_ns, self.max_ns)
    }
}

/// The least value of bucket `i`, as the BPF program sorts them.
fn first_of_bucket(i: usize) -> u64 {
    if i < 8 {
        return i as u64;
    }
    let octave = (i - 4) / 4;
    ((i - octave * 4) as u64) << octave
}

/// Its greatest value.
fn last_of_bucket(i: usize) -> u64 {
    first_of_bucket(i + 1) - 1
}

/// Says "attached"; then, for each line on stdin, asks `watch` for a text, puts it into the
/// file of that name in `dir`, and says the name. Attaching takes long on a busy machine, so
/// this is done once for all turns of a measurement.
pub fn serve(dir: &Path, mut watch: impl FnMut() -> Result<String>) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "attached")?;
    for name in std::io::stdin().lines() {
        let name = name?;
        let file = dir.join(&name);
        fs::write(&file, watch()?).with_context(|| file.display().to_string())?;
        writeln!(out, "{name}")?;
    }
    Ok(())
}

/// Four bytes of a key or a value.
pub fn word(b: &[u8], at: usize) -> Result<u32> {
    Ok(u32::from_ne_bytes(b[at..at + 4].try_into()?))
}

/// Eight bytes of it.
pub fn long(b: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from_ne_bytes(b[at..at + 8].try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// bucket() of observer/times.h.
    fn bucket(ns: u64) -> usize {
        let (mut n, mut octave) = (ns, 0);
        while n >= 8 {
            n >>= 1;
            octave += 1;
        }
        octave * 4 + n as usize
    }

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        for ns in (0..10_000).chain([1 << 20, (1 << 20) + 1, 123_456_789]) {
            let i = bucket(ns);
            assert!(first_of_bucket(i) <= ns && ns <= last_of_bucket(i), "{ns} in bucket {i}");
            assert_eq!(bucket(first_of_bucket(i)), i);
            assert_eq!(bucket(last_of_bucket(i)), i);
            assert_eq!(bucket(last_of_bucket(i) + 1), i + 1);
        }
    }

    #[test]
    fn quantiles_and_counts() {
        let mut t = Times::default();
        for ns in [10, 1_000, 1_000, 100_000] {
            t.buckets[bucket(ns)] += 1;
            t.times += 1;
            t.max_ns = t.max_ns.max(ns);
        }
        assert_eq!(t.quantile_ns(0.5), last_of_bucket(bucket(1_000)));
        assert_eq!(t.quantile_ns(1.0), 100_000);
        assert_eq!((t.up_to(9), t.up_to(10), t.up_to(50_000)), (0, 1, 3));
    }
}
