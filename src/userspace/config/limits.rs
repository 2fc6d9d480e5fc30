// SPDX-License-Identifier: GPL-2.0-only
//! Limits of low priorities: what RT1+ tasks may have used of a second of a CPU when one of theirs
//! begins (src/bpf/policy/rt1.h). Written `PRIORITY:PCT,…`, packed into one word, so that a change
//! is seen whole.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::abi::bindings::{ARTIS_RT1_LIMITS, ARTIS_RT1_MAX, ARTIS_RT1_MIN};

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    /// For this priority and those below.
    up_to: u8,
    /// Share of each second.
    pct: u8,
}

/// Some of them, the lowest first; both their numbers rise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits(Vec<Limit>);

/// Why a text is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// No `PRIORITY:PCT`.
    #[error("\"{0}\" is not PRIORITY:PCT")]
    NoPair(String),
    /// A number that is none, or out of bounds.
    #[error("{what} \"{text}\" is not one of {min} to {max}")]
    Number {
        /// Which of the two.
        what: &'static str,
        /// As written.
        text: String,
        /// The lowest.
        min: u8,
        /// The highest.
        max: u8,
    },
    /// The second of two limits is for no more, or allows less.
    #[error("behind {0} comes {1}: priorities and shares have to rise")]
    Falls(String, String),
    /// More than the word holds.
    #[error("these are {0} limits")]
    TooMany(usize),
}

/// Bits of one limit, and of the priority in it.
const BITS: usize = 16;
const PRIORITY_BITS: usize = 8;

impl Limits {
    /// What a text may be.
    pub const BOUNDS: &str = "none, or up to four PRIORITY:PCT, rising, as 20:30,60:80";

    /// In one word, as BPF reads it.
    pub fn packed(self) -> u64 {
        let one = |limit: &Limit| u64::from(limit.pct) << PRIORITY_BITS | u64::from(limit.up_to);
        self.0.iter().rev().fold(0, |word, limit| word << BITS | one(limit))
    }

    /// From such a word.
    pub fn unpacked(word: u64) -> Self {
        let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
        let all = [(a, b), (c, d), (e, f), (g, h)];
        let set = all.into_iter().filter(|(up_to, _)| *up_to != 0);
        Self(set.map(|(up_to, pct)| Limit { up_to, pct }).collect())
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.up_to, self.pct)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(","))
    }
}

fn number(what: &'static str, text: &str, min: u8, max: u8) -> Result<u8, LimitsError> {
    let read: Result<u8, ParseIntError> = text.parse();
    let read = read.ok().filter(|number| (min..=max).contains(number));
    read.ok_or_else(|| LimitsError::Number { what, text: text.to_owned(), min, max })
}

impl FromStr for Limit {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Self, LimitsError> {
        let no_pair = || LimitsError::NoPair(text.to_owned());
        let (up_to, pct) = text.split_once(':').ok_or_else(no_pair)?;
        Ok(Self {
            up_to: number("the priority", up_to, ARTIS_RT1_MIN as u8, ARTIS_RT1_MAX as u8)?,
            pct: number("the share", pct, 1, 100)?,
        })
    }
}

impl FromStr for Limits {
    type Err = LimitsError;

    fn from_str(text: &str) -> Result<Self, LimitsError> {
        if text == "none" {
            return Ok(Self::default());
        }
        let all: Vec<Limit> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if all.len() > ARTIS_RT1_LIMITS as usize {
            return Err(LimitsError::TooMany(all.len()));
        }
        if let Some(two) = all.windows(2).find(|l| l[1].up_to <= l[0].up_to || l[1].pct < l[0].pct)
        {
            return Err(LimitsError::Falls(two[0].to_string(), two[1].to_string()));
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_read_is_what_is_written() {
        for text in ["none", "20:30", "1:1,2:1,3:50,98:100"] {
            let limits: Limits = text.parse().expect(text);
            assert_eq!(limits.to_string(), text);
            assert_eq!(Limits::unpacked(limits.clone().packed()), limits, "{text}");
        }
        assert_eq!("none".parse().map(Limits::packed), Ok(0));
        assert_eq!("20:30,60:80".parse().map(Limits::packed), Ok(0x503c_1e14));
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        for (text, words) in [
            ("", "\"\" is not PRIORITY:PCT"),
            ("20", "\"20\" is not PRIORITY:PCT"),
            ("0:30", "the priority \"0\" is not one of 1 to 98"),
            ("99:30", "the priority \"99\" is not one of 1 to 98"),
            ("20:101", "the share \"101\" is not one of 1 to 100"),
            ("20:0", "the share \"0\""),
            ("20:x", "the share \"x\""),
            ("20:30,20:40", "behind 20:30 comes 20:40"),
            ("20:30,40:20", "have to rise"),
            ("1:1,2:2,3:3,4:4,5:5", "these are 5 limits"),
        ] {
            let error = text.parse::<Limits>().expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "[0-9:,none]{0,12}") {
            if let Ok(limits) = text.parse::<Limits>() {
                prop_assert_eq!(Limits::unpacked(limits.clone().packed()), limits);
            }
        }
    }
}
