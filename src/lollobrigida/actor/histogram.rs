// SPDX-License-Identifier: GPL-2.0-only
//! Distributions that are recorded without allocating, carried as JSON, and merged.

use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::result::Latency;

/// Greater values count as this: ten minutes.
const MOST_NS: u64 = 600_000_000_000;
/// Values are told apart to 0.1 %.
const DIGITS: u8 = 3;

/// A distribution of times in ns, from 1 ns to ten minutes, to 0.1 %. As JSON: pairs of a
/// value and its count.
#[derive(Clone, PartialEq)]
pub struct Histogram(Hdr<u64>);

impl Histogram {
    /// An empty one, all its memory allocated (some 250 KB).
    #[must_use]
    pub fn new() -> Self {
        let empty = Hdr::new_with_bounds(1, MOST_NS, DIGITS);
        Self(empty.expect("constant bounds that hdrhistogram takes"))
    }

    /// Counts a value. Never allocates.
    pub fn record(&mut self, value_ns: u64) {
        self.0.saturating_record(value_ns);
    }

    /// Takes another's values in.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        latency(self).fmt(f)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// A distribution's figures; all 0 for an empty one.
#[must_use]
pub fn latency(histogram: &Histogram) -> Latency {
    let h = &histogram.0;
    if h.is_empty() {
        return Latency::default();
    }
    Latency {
        count: h.len(),
        min_ns: h.min(),
        mean_ns: h.mean(),
        stdev_ns: h.stdev(),
        p50_ns: h.value_at_quantile(0.5),
        p90_ns: h.value_at_quantile(0.9),
        p99_ns: h.value_at_quantile(0.99),
        p999_ns: h.value_at_quantile(0.999),
        max_ns: h.max(),
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(
            self.0.iter_recorded().map(|v| (v.value_iterated_to(), v.count_since_last_iteration())),
        )
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut histogram = Self::new();
        for (value, count) in Vec::<(u64, u64)>::deserialize(from)? {
            histogram.0.saturating_record_n(value, count);
        }
        Ok(histogram)
    }
}
