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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        histogram
    }

    #[test]
    fn is_the_same_after_the_way_through_json() {
        let told = of(&[0, 1, 5, 5, 999, 123_456, 7_654_321, MOST_NS, u64::MAX]);
        let text = serde_json::to_string(&told).unwrap();
        let read: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!((read.count(), latency(&read)), (9, latency(&told)));
        assert_eq!(serde_json::from_str::<Histogram>("[]").unwrap().count(), 0);
    }

    #[test]
    fn merged_ones_are_as_if_recorded_together() {
        let mut merged = of(&[10, 20]);
        merged.add(&of(&[30, 1_000_000]));
        assert_eq!(merged, of(&[10, 20, 30, 1_000_000]));
    }

    #[test]
    fn figures_are_those_of_the_values() {
        let values: Vec<u64> = (1..=1000).collect();
        let told = latency(&of(&values));
        assert_eq!((told.count, told.min_ns, told.p50_ns, told.max_ns), (1000, 1, 500, 1000));
        assert_eq!((told.p90_ns, told.p99_ns, told.p999_ns), (900, 990, 999));
        assert!((told.mean_ns - 500.5).abs() < 0.6 && (told.stdev_ns - 288.7).abs() < 0.6);
        assert_eq!(latency(&Histogram::new()), Latency::default());
        // greater ones are clamped to the greatest, to 0.1 %
        let most = latency(&of(&[u64::MAX])).max_ns;
        assert!(most >= MOST_NS && most - MOST_NS < MOST_NS / 500, "{most}");
    }
}
