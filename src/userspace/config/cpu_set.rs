// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPU ids as users write them: a list `2-3,6` or a mask `0xc`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::abi::MAX_CPUS;

/// A set of CPU ids, all below [`MAX_CPUS`]. Prints as a CPU list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(BTreeSet<usize>);

/// What is wrong with a text that should be a CPU list or mask.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuSetError {
    /// Neither a number nor a range stands between two commas.
    #[error(
        "\"{0}\" is neither a CPU nor a range of CPUs; write a list like 2-3,6 or a mask like 0xc"
    )]
    NotACpu(String),
    /// A range that ends before it begins.
    #[error("the range \"{0}\" ends before it begins; write the lower CPU first")]
    Backwards(String),
    /// A CPU is named a second time.
    #[error("CPU {0} is named twice; a typing error? Name each CPU once")]
    Twice(usize),
    /// The id is beyond what the scheduler can handle.
    #[error("CPU {0} is beyond the {MAX_CPUS} CPUs that this scheduler handles")]
    TooHigh(String),
    /// Not a hexadecimal number after `0x`.
    #[error("\"{0}\" is not a hexadecimal mask; CPUs 2 and 3 are 0xc, or as a list 2-3")]
    NotAMask(String),
}

impl CpuSet {
    /// Is the CPU in the set?
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The ids, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// Number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Has the set no CPU?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The CPUs of this set that are not in `other`.
    pub fn minus(&self, other: &Self) -> Self {
        self.0.difference(&other.0).copied().collect()
    }

    /// The CPUs that are in both sets.
    pub fn and(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }

    /// The CPUs that are in either set.
    pub fn or(&self, other: &Self) -> Self {
        self.0.union(&other.0).copied().collect()
    }

    fn add(&mut self, cpu: usize) -> Result<(), CpuSetError> {
        if cpu >= MAX_CPUS {
            return Err(CpuSetError::TooHigh(cpu.to_string()));
        }
        if self.0.insert(cpu) { Ok(()) } else { Err(CpuSetError::Twice(cpu)) }
    }

    fn from_list(text: &str) -> Result<Self, CpuSetError> {
        let mut set = Self::default();
        for part in text.split(',').map(str::trim) {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (cpu_id(first, part)?, cpu_id(last, part)?),
                None => (cpu_id(part, part)?, cpu_id(part, part)?),
            };
            if last < first {
                return Err(CpuSetError::Backwards(part.to_owned()));
            }
            for cpu in first..=last {
                set.add(cpu)?;
            }
        }
        Ok(set)
    }

    /// `digits` without `0x`; commas group digits as in /proc/irq/*/smp_affinity.
    fn from_mask(text: &str, digits: &str) -> Result<Self, CpuSetError> {
        let digits: String = digits.chars().filter(|c| !matches!(c, ',' | '_')).collect();
        if digits.is_empty() {
            return Err(CpuSetError::NotAMask(text.to_owned()));
        }
        let mut set = Self::default();
        for (place, digit) in digits.chars().rev().enumerate() {
            let bits = digit.to_digit(16).ok_or_else(|| CpuSetError::NotAMask(text.to_owned()))?;
            for bit in (0..4).filter(|bit| bits & (1 << bit) != 0) {
                set.add(place * 4 + bit)?;
            }
        }
        Ok(set)
    }
}

fn cpu_id(digits: &str, part: &str) -> Result<usize, CpuSetError> {
    let digits = digits.trim();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(CpuSetError::NotACpu(part.to_owned()));
    }
    match digits.parse() {
        Ok(cpu) if cpu < MAX_CPUS => Ok(cpu),
        _ => Err(CpuSetError::TooHigh(digits.to_owned())),
    }
}

impl FromStr for CpuSet {
    type Err = CpuSetError;

    /// Reads a list (`2-3,6`) or a hexadecimal mask (`0xc`).
    ///
    /// The empty text and the mask `0x0` are the empty set: whether it may be
    /// empty is not decided here.
    fn from_str(text: &str) -> Result<Self, CpuSetError> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(digits) => Self::from_mask(text, digits),
            None => Self::from_list(text),
        }
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Vec<usize>, CpuSetError> {
        text.parse::<CpuSet>().map(|set| set.iter().collect())
    }

    #[test]
    fn reads_lists_and_masks() {
        assert_eq!(parse("2-3,6"), Ok(vec![2, 3, 6]));
        assert_eq!(parse(" 2 - 3 , 6 "), Ok(vec![2, 3, 6]));
        assert_eq!(parse("0xc"), Ok(vec![2, 3]));
        assert_eq!(parse("0X1,00000000"), Ok(vec![32]));
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("0x0"), Ok(vec![]));
        assert_eq!(parse("1023"), Ok(vec![1023]));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parse("2-"), Err(CpuSetError::NotACpu("2-".into())));
        assert_eq!(parse("2,,3"), Err(CpuSetError::NotACpu("".into())));
        assert_eq!(parse("+2"), Err(CpuSetError::NotACpu("+2".into())));
        assert_eq!(parse("1-2-3"), Err(CpuSetError::NotACpu("1-2-3".into())));
        assert_eq!(parse("3-2"), Err(CpuSetError::Backwards("3-2".into())));
        assert_eq!(parse("1-3,2"), Err(CpuSetError::Twice(2)));
        assert_eq!(parse("1024"), Err(CpuSetError::TooHigh("1024".into())));
        assert_eq!(
            parse("0-99999999999999999999"),
            Err(CpuSetError::TooHigh("99999999999999999999".into()))
        );
        assert_eq!(parse("0x"), Err(CpuSetError::NotAMask("0x".into())));
        assert_eq!(parse("0xfg"), Err(CpuSetError::NotAMask("0xfg".into())));
    }

    proptest! {
        #[test]
        fn list_round_trip(cpus in prop::collection::btree_set(0..MAX_CPUS, 0..100)) {
            let set = CpuSet(cpus);
            prop_assert_eq!(set.to_string().parse::<CpuSet>(), Ok(set));
        }

        #[test]
        fn mask_is_its_bits(mask in any::<u64>()) {
            let set: CpuSet = format!("{mask:#x}").parse().expect("a mask");
            for cpu in 0..64 {
                prop_assert_eq!(set.contains(cpu), mask >> cpu & 1 == 1);
            }
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}") {
            let _ = text.parse::<CpuSet>();
        }
    }
}
