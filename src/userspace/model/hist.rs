// SPDX-License-Identifier: GPL-2.0-only
//! A histogram of times (src/bpf/policy/load.h).

use std::iter::Sum;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::total;
use crate::abi::bindings::{ARTIS_HIST_FIRST as FIRST, ARTIS_HIST_SLOTS};

/// Number of slots.
pub const SLOTS: usize = ARTIS_HIST_SLOTS as usize;

/// Numbers of times by their length: a slot for each power of two of nanoseconds, [`SLOTS`] at most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Hist(pub Vec<u64>);

impl Hist {
    /// The least time of a slot, ns, as policy/load.h has it.
    pub fn from_ns(slot: usize) -> u64 {
        slot.checked_sub(1).map_or(0, |above| 1 << (FIRST as usize + above))
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        total(self.0.iter().copied())
    }

    /// The time that a share of `share` (0 to 1) does not exceed, ns: between the bounds of its
    /// slot by how far into it the share lies. 0: there are none. At least the last slot's
    /// bound (2.1 s) for one in there.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let wanted = share.clamp(0.0, 1.0) * self.count() as f64;
        let mut before = 0.0;
        for (slot, n) in self.0.iter().enumerate().filter(|(_, n)| **n > 0) {
            let n = *n as f64;
            if before + n >= wanted {
                let (from, to) = (Self::from_ns(slot) as f64, Self::from_ns(slot + 1) as f64);
                let last = slot + 1 >= SLOTS;
                return if last { from } else { from + (to - from) * (wanted - before) / n };
            }
            before += n;
        }
        0.0
    }

    /// What came since `before`. Where that has more (it began anew), all of it.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        if self.0.len() != before.0.len() || self.0.iter().zip(&before.0).any(|(n, b)| n < b) {
            return self.clone();
        }
        Self(self.0.iter().zip(&before.0).map(|(n, b)| n - b).collect())
    }

    /// What came since `before`, or all if nothing did, or there is none before: what is fit to
    /// read percentiles of an interval from.
    #[must_use]
    pub fn latest(&self, before: Option<&Self>) -> Self {
        let fresh = before.map(|before| self.since(before)).filter(|fresh| fresh.count() > 0);
        fresh.unwrap_or_else(|| self.clone())
    }
}

impl<'a> Sum<&'a Self> for Hist {
    fn sum<I: Iterator<Item = &'a Self>>(hists: I) -> Self {
        let mut sum: Vec<u64> = Vec::new();
        for Self(slots) in hists {
            sum.resize(sum.len().max(slots.len()), 0);
            sum.iter_mut().zip(slots).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        Self(sum)
    }
}

/// The slots of a `struct artis_hist`.
impl From<[u32; SLOTS]> for Hist {
    fn from(slots: [u32; SLOTS]) -> Self {
        Self(slots.map(u64::from).to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::bindings::ARTIS_HIST_LAST as LAST;

    #[test]
    fn quantiles_lie_in_their_slots() {
        let mut slots = vec![0; SLOTS];
        (slots[3], slots[10]) = (99, 1);
        let hist = Hist(slots);
        let p50 = hist.quantile_ns(0.5);
        assert!(p50 > Hist::from_ns(3) as f64 && p50 < Hist::from_ns(4) as f64, "{p50}");
        assert!(hist.quantile_ns(0.999) > Hist::from_ns(10) as f64);
        assert_eq!(Hist::default().quantile_ns(0.5), 0.0);
        assert_eq!(Hist::from_ns(1), 512);
        assert_eq!(Hist::from_ns(2), 1_024);
        assert_eq!(Hist::from_ns(SLOTS - 1), 1 << LAST);
    }

    #[test]
    fn a_sum_has_the_slots_of_all() {
        let sum: Hist = [Hist(vec![1]), Hist(vec![2, 5])].iter().sum();
        assert_eq!(sum, Hist(vec![3, 5]));
    }

    #[test]
    fn what_came_since() {
        let before = Hist(vec![1, 2]);
        assert_eq!(Hist(vec![1, 5]).since(&before), Hist(vec![0, 3]));
        assert_eq!(Hist(vec![0, 5]).since(&before), Hist(vec![0, 5]), "it began anew");
        assert_eq!(Hist(vec![1, 5]).latest(Some(&before)), Hist(vec![0, 3]));
        assert_eq!(before.latest(Some(&before)), before, "nothing came");
        assert_eq!(before.latest(None), before);
    }
}
