// SPDX-License-Identifier: GPL-2.0-only
//! One policy constant as users meet it: name, unit, bounds. The command line
//! and `scx_artis ctl` read values by the same description.

use std::ops::RangeInclusive;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};

use super::{ConfigError, KNOBS, Policy, Word};
use crate::abi::artis_policy;

/// What a value may be.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A whole number between two bounds.
    Number {
        /// What it counts, as written behind it; may be empty.
        unit: &'static str,
        /// BPF's unit is so many times smaller.
        scale: u64,
        /// Values that it takes.
        range: RangeInclusive<u64>,
    },
    /// One of some words; its place among them is the value.
    Word(&'static [&'static str]),
}

/// One constant that the user may set.
#[derive(Clone, Debug)]
pub struct Knob {
    /// Name of its field in [`Policy`]; with dashes it is the option's.
    pub option: &'static str,
    /// Name of its field in `struct artis_policy`.
    pub field: &'static str,
    /// That field.
    pub word: fn(&mut artis_policy) -> Word<'_>,
    /// What it is, without the unit.
    pub what: &'static str,
    /// Value when the user says nothing, as the user would write it.
    pub default: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// Reads it in the unit of the option.
    pub get: fn(&Policy) -> u64,
    /// Sets it in the unit of the option; bounds are not looked at.
    pub set: fn(&mut Policy, u64),
}

/// Why a text is no value of a knob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KnobError {
    /// Not digits only.
    #[error("\"{text}\" is no whole number; {bounds}")]
    NoNumber {
        /// As written.
        text: String,
        /// What it may be.
        bounds: String,
    },
    /// Too small or too great.
    #[error("{text} is out of bounds; {bounds}")]
    OutOfBounds {
        /// As written.
        text: String,
        /// What it may be.
        bounds: String,
    },
    /// A word that is none of them.
    #[error("\"{text}\" is none of {bounds}")]
    NoWord {
        /// As written.
        text: String,
        /// What it may be.
        bounds: String,
    },
}

/// A time: µs for the user, ns for BPF.
pub(super) const fn us(min: u64, max: u64) -> Kind {
    Kind::Number { unit: "µs", scale: 1_000, range: min..=max }
}

/// A plain number of `unit`.
pub(super) const fn number(min: u64, max: u64, unit: &'static str) -> Kind {
    Kind::Number { unit, scale: 1, range: min..=max }
}

impl Knob {
    /// Name for users: the option without the dashes in front of it.
    pub fn name(&self) -> String {
        self.option.replace('_', "-")
    }

    /// The knob with this name.
    ///
    /// # Errors
    /// When there is none; a near name is told.
    pub fn named(name: &str) -> Result<&'static Self, ConfigError> {
        KNOBS.iter().copied().find(|knob| knob.name() == name).ok_or_else(|| {
            let near =
                |knob: &&Self| (strsim::damerau_levenshtein(name, &knob.name()), knob.name());
            let nearest = KNOBS.iter().map(near).min();
            let nearest = nearest.filter(|(distance, _)| *distance <= 1 + name.len() / 3);
            ConfigError::UnknownKnob {
                name: name.to_owned(),
                nearest: nearest.map(|(_, name)| name),
            }
        })
    }

    /// Reads a value in the unit of the option.
    ///
    /// # Errors
    /// When it is none, or out of bounds.
    pub fn parse(&self, text: &str) -> Result<u64, KnobError> {
        let (text_owned, bounds) = (text.to_owned(), self.bounds());
        match &self.kind {
            Kind::Word(words) => words
                .iter()
                .position(|word| *word == text)
                .map(|place| place as u64)
                .ok_or(KnobError::NoWord { text: text_owned, bounds }),
            Kind::Number { .. } if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) => {
                Err(KnobError::NoNumber { text: text_owned, bounds })
            }
            Kind::Number { range, .. } => text
                .parse()
                .ok() // else it has more digits than any bound
                .filter(|value| range.contains(value))
                .ok_or(KnobError::OutOfBounds { text: text_owned, bounds }),
        }
    }

    /// A value as the user writes it.
    pub fn text(&self, value: u64) -> String {
        match &self.kind {
            Kind::Word(words) => {
                { usize::try_from(value).ok().and_then(|place| words.get(place)).unwrap_or(&"?") }
                    .to_string()
            }
            Kind::Number { .. } => value.to_string(),
        }
    }

    /// The unit of its values; empty if there is none.
    pub fn unit(&self) -> &'static str {
        match &self.kind {
            Kind::Number { unit, .. } => unit,
            Kind::Word(_) => "",
        }
    }

    /// The values that it takes: `100 to 100000 µs`, `least, thesis`.
    pub fn bounds(&self) -> String {
        match &self.kind {
            Kind::Number { unit, range, .. } => {
                format!("{} to {} {unit}", range.start(), range.end()).trim_end().to_owned()
            }
            Kind::Word(words) => words.join(", "),
        }
    }

    /// Writes the value that `policy` has for it into its field, in BPF's unit.
    pub fn store(&self, policy: &Policy, constants: &mut artis_policy) {
        (self.word)(constants).store(self.scaled((self.get)(policy)));
    }

    /// A value in the unit of `struct artis_policy`.
    fn scaled(&self, value: u64) -> u64 {
        match &self.kind {
            Kind::Number { scale, .. } => value * scale,
            Kind::Word(_) => value,
        }
    }

    /// Its line in `--help`.
    pub(super) fn help(&self) -> String {
        match self.kind {
            Kind::Number { .. } => format!("{} [{}]", self.what, self.bounds()),
            Kind::Word(_) => self.what.to_owned(), // clap adds the words
        }
    }

    /// What stands for its value in `--help`.
    pub(super) fn placeholder(&self) -> &'static str {
        match self.kind {
            Kind::Number { unit: "µs", .. } => "US",
            Kind::Number { unit: "%", .. } => "PCT",
            Kind::Number { .. } => "NR",
            Kind::Word(_) => "WORD",
        }
    }
}

/// Has clap read a knob's value.
#[derive(Clone, Debug)]
pub(super) struct KnobParser(pub &'static Knob);

impl TypedValueParser for KnobParser {
    type Value = u64;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<u64, clap::Error> {
        let knob = self.0;
        // clap wraps the error of a function into its own words
        TypedValueParser::parse_ref(&move |text: &str| knob.parse(text), command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        match &self.0.kind {
            Kind::Word(words) => Some(Box::new(words.iter().map(PossibleValue::new))),
            Kind::Number { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(name: &str) -> &'static Knob {
        Knob::named(name).expect("a knob")
    }

    #[test]
    fn every_knob_is_sound() {
        for knob in KNOBS {
            let name = knob.name();
            let default = knob.parse(knob.default).expect(&name);
            assert_eq!(knob.text(default), knob.default, "{name}");
            let greatest = match &knob.kind {
                Kind::Number { range, .. } => *range.end(),
                Kind::Word(words) => words.len() as u64 - 1,
            };
            assert_eq!(knob.parse(&knob.text(greatest)), Ok(greatest), "{name}");
            let mut constants = artis_policy::default();
            if let Word::Half(_) = (knob.word)(&mut constants) {
                assert!(u32::try_from(knob.scaled(greatest)).is_ok(), "{name} does not fit");
            }
            assert_eq!(knob.field.ends_with("_ns"), knob.option.ends_with("_us"), "{name}");
            assert_eq!(knob.option.ends_with("_us"), knob.unit() == "µs", "{name}");
        }
    }

    #[test]
    fn values_are_read_within_their_bounds() {
        let slice = knob("slice-nrt-us");
        assert_eq!((slice.parse("100"), slice.scaled(100)), (Ok(100), 100_000));
        for (text, words) in [
            ("99", "99 is out of bounds; 100 to 100000 µs"),
            ("100001", "out of bounds"),
            ("99999999999999999999999", "out of bounds"),
            ("", "\"\" is no whole number; 100 to 100000 µs"),
            ("+200", "no whole number"),
            ("2ms", "no whole number"),
        ] {
            let error = slice.parse(text).expect_err(text).to_string();
            assert!(error.contains(words), "{error}");
        }
        let error = knob("predict").parse("ran").expect_err("no such rule").to_string();
        assert_eq!(error, "\"ran\" is none of least, thesis");
    }

    #[test]
    fn a_typing_error_gets_the_nearest_name() {
        let error = |name| Knob::named(name).expect_err("unknown").to_string();
        assert!(error("predict-c-su").contains("did you mean predict-c-us?"));
        assert!(error("quiet-us").contains("ctl get"), "{}", error("quiet-us"));
    }
}
