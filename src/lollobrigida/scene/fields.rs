// SPDX-License-Identifier: GPL-2.0-only
//! The keys of one table or block as they were read: known ones only, each checked for
//! itself. What they mean together is for the files that take them out again.

use std::collections::BTreeMap;

use super::keys::{self, Place, nearest};
use super::mistake::{Found, Span};
use super::value::{Policy, Raw, Value};
use super::{CallKind, Cpus};

/// Checked keys of one place.
#[derive(Debug)]
pub(super) struct Fields {
    /// The table's or block's begin: where mistakes about missing keys are shown.
    pub header: Span,
    entries: BTreeMap<&'static str, Entry>,
}

#[derive(Debug)]
struct Entry {
    key: Span,
    /// `None`: refused already.
    value: Option<(Value, Span)>,
}

impl Fields {
    pub fn new(header: Span) -> Self {
        Self { header, entries: BTreeMap::new() }
    }

    /// Takes a key in, or says what is wrong with it.
    pub fn enter(
        &mut self,
        places: &[Place],
        (name, key_span): (&str, Span),
        (raw, value_span): (&Raw, Span),
        found: &mut Vec<Found>,
    ) {
        let known = places.iter().flat_map(|p| keys::of(*p)).find(|k| k.name == name);
        let Some(key) = known else {
            found.push(unknown(name, key_span, places));
            return;
        };
        if let Some(first) = self.entries.get(key.name) {
            found.push(
                Found::new(key_span, format!("`{name}` is here twice"), "each key once")
                    .key(name)
                    .also(first.key.clone(), "first here"),
            );
            return;
        }
        let value = match key.kind.check(raw, &value_span) {
            Ok(value) => Some((value, value_span)),
            Err(wrong) => {
                let expected = format!("expected {}", key.kind.expected());
                let mut mistake =
                    Found::new(value_span, format!("`{name}` is {}", wrong.seen), expected)
                        .key(name);
                mistake.help = wrong.help;
                found.push(mistake);
                None
            }
        };
        self.entries.insert(key.name, Entry { key: key_span, value });
    }

    /// Whether the key is there, its value refused or not.
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Which of these keys are there.
    pub fn those_of<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names.iter().copied().filter(|n| self.has(n)).collect()
    }

    /// Where the key's name stands; the header if it is not there.
    pub fn key_span(&self, name: &str) -> Span {
        self.entries.get(name).map_or(&self.header, |e| &e.key).clone()
    }

    /// Where the key's value stands; the key if its value was refused.
    pub fn value_span(&self, name: &str) -> Span {
        match self.entries.get(name) {
            Some(Entry { value: Some((_, span)), .. }) => span.clone(),
            _ => self.key_span(name),
        }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.entries.get(name)?.value.as_ref().map(|(value, _)| value)
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.value(name)? {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// A whole number; the key's range fits the type.
    pub fn whole<T: TryFrom<i128>>(&self, name: &str) -> Option<T> {
        match self.value(name)? {
            Value::Whole(n) => T::try_from(*n).ok(),
            _ => None,
        }
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        match self.value(name)? {
            Value::Number(n) => Some(*n),
            Value::Whole(n) => Some(*n as f64),
            _ => None,
        }
    }

    pub fn cpus(&self, name: &str) -> Option<&Cpus> {
        match self.value(name)? {
            Value::Cpus(c) => Some(c),
            _ => None,
        }
    }

    pub fn policy(&self) -> Option<Policy> {
        match self.value("sched")? {
            Value::Policy(p) => Some(*p),
            _ => None,
        }
    }

    pub fn call(&self) -> Option<CallKind> {
        match self.value("call")? {
            Value::Call(c) => Some(*c),
            _ => None,
        }
    }

    pub fn groups(&self, name: &str) -> &[(String, Span)] {
        match self.value(name) {
            Some(Value::Groups(g)) => g,
            _ => &[],
        }
    }

    /// Says that a key must be there, unless it is. `expected` begins with what to add.
    pub fn need(&self, name: &str, seen: &str, expected: &str, found: &mut Vec<Found>) {
        if !self.has(name) {
            let mistake = Found::new(self.header.clone(), seen, expected).key(name).missing();
            found.push(mistake);
        }
    }

    /// Says of each of these keys that is there that it cannot be.
    pub fn refuse(&self, names: &[&str], why: &str, todo: &str, found: &mut Vec<Found>) {
        for name in self.those_of(names) {
            found.push(Found::new(self.key_span(name), format!("`{name}` {why}"), todo).key(name));
        }
    }

    /// Says of these keys, which mean the same, that only one can be.
    pub fn only_one(&self, names: &[&str], found: &mut Vec<Found>) {
        if let [first, others @ ..] = &self.those_of(names)[..] {
            for other in others {
                found.push(
                    Found::new(
                        self.key_span(other),
                        format!("`{other}` beside `{first}`"),
                        "they say the same: expected one of them",
                    )
                    .key(other)
                    .also(self.key_span(first), "the other one"),
                );
            }
        }
    }
}

/// The mistake of a key that these places do not have.
pub(super) fn unknown(name: &str, span: Span, places: &[Place]) -> Found {
    let here = || places.iter().flat_map(|p| keys::of(*p)).map(|k| k.name);
    let mistake = |seen: &str, expected: String| {
        Found::new(span.clone(), format!("`{}` {seen}", name.escape_debug()), expected).key(name)
    };
    let in_block = places == [Place::Block];
    let elsewhere = keys::KEYS
        .iter()
        .find(|k| k.name == name && (k.place == Place::Block) == in_block)
        .map(|k| match k.place {
            Place::Scene => "it belongs to the top of the file, before the first [[group]]",
            Place::Group => "it belongs into a [[group]]: it is the same in all phases",
            Place::Phase | Place::Block => "it belongs into a [[group]] or its [[group.phase]]",
        });
    if let Some(elsewhere) = elsewhere {
        return mistake("is in the wrong place", elsewhere.into());
    }
    if in_block && keys::KEYS.iter().any(|k| k.name == name) {
        let expected = "only the TOML form has it: see lollobrigida convert";
        return mistake("is no key of this format", expected.into());
    }
    match nearest(name, here()) {
        Some(near) => mistake("is no known key", format!("did you mean `{near}`?")),
        None => {
            let all: Vec<_> = here().collect();
            mistake("is no known key", format!("expected one of {}", all.join(", ")))
        }
    }
}
