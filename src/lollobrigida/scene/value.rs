// SPDX-License-Identifier: GPL-2.0-only
//! What the value of a key may be: one check for both formats.

use std::collections::BTreeSet;

use super::keys::nearest;
use super::mistake::Span;
use super::{CallKind, Cpus};

/// What is allowed as a value.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text that is not blank.
    Text,
    /// A short word.
    Name,
    /// A relative path of cgroups.
    Cgroup,
    /// A whole number.
    Whole {
        /// Empty for plain numbers.
        unit: &'static str,
        /// Included.
        min: i128,
        /// Included.
        max: i128,
    },
    /// Any number.
    Number {
        /// Empty for plain numbers.
        unit: &'static str,
        /// Included.
        min: f64,
        /// Included.
        max: f64,
    },
    /// CPUs as the kernel lists them.
    CpuList,
    /// CPUs as bits.
    CpuMask,
    /// A scheduling policy.
    Policy,
    /// A system call by name.
    Call,
    /// Names of groups.
    Groups,
    /// Tables of their own.
    Tables,
}

/// A value as it stands in the file.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Text(String),
    /// A text of a format that has no quotes.
    Word(String),
    Whole {
        digits: String,
        radix: u32,
    },
    Number(f64),
    List(Vec<(Raw, Span)>),
    /// Whatever no key takes, by name.
    Other(&'static str),
}

/// A checked value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Whole(i128),
    Number(f64),
    Cpus(Cpus),
    Policy(Policy),
    Call(CallKind),
    Groups(Vec<(String, Span)>),
}

/// Policies by name, still without parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Normal,
    Batch,
    Idle,
    Ext,
    Fifo,
    Rr,
    Deadline,
    /// scx_artis' firm class: refused, with advice.
    Rt1,
}

impl Policy {
    pub const ALL: [(&'static str, Self); 8] = [
        ("NORMAL", Self::Normal),
        ("BATCH", Self::Batch),
        ("IDLE", Self::Idle),
        ("EXT", Self::Ext),
        ("FIFO", Self::Fifo),
        ("RR", Self::Rr),
        ("DEADLINE", Self::Deadline),
        ("RT1", Self::Rt1),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, p)| *p == self).map_or("?", |(name, _)| name)
    }
}

/// Highest CPU number that a scene may name: the kernel's own limit (NR_CPUS) less one.
const MOST_CPU: u32 = 8191;
/// Longest name of a group: what still fits the report's tables.
const LONGEST_NAME: usize = 32;
/// Longest path of cgroups, in bytes.
const LONGEST_PATH: usize = 200;

/// Longest list of CPUs, in bytes: a bound on the work of reading one. Any set of CPUs has one that is
/// half as long.
const LONGEST_LIST: usize = 5 * (MOST_CPU as usize + 1);

/// Why a value is refused: what was seen and, where there is more to say than what was
/// expected, what to do.
pub(super) struct Wrong {
    pub seen: String,
    pub help: Option<String>,
}

fn wrong(seen: impl Into<String>) -> Wrong {
    Wrong { seen: seen.into(), help: None }
}

impl Wrong {
    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Kind {
    /// In words, as in "expected ...".
    pub fn expected(&self) -> String {
        let of = |unit: &str| if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        match self {
            Self::Text => "a text that is not blank".into(),
            Self::Name => format!("1 to {LONGEST_NAME} of A-Z a-z 0-9 . _ + -, in quotes"),
            Self::Cgroup => "names of A-Z a-z 0-9 _ - with / between, in quotes".into(),
            Self::Whole { unit, min, max } => {
                format!("a whole number from {min} to {max}{}", of(unit))
            }
            Self::Number { unit, min, max } => format!("a number from {min} to {max}{}", of(unit)),
            Self::CpuList => format!("a list of CPUs (0 to {MOST_CPU}), as \"0-2,5\""),
            Self::CpuMask => format!("a hexadecimal mask of CPUs (0 to {MOST_CPU}), as 0x6"),
            Self::Policy => {
                let had = Policy::ALL.iter().filter(|(_, p)| *p != Policy::Rt1);
                words(had.map(|(name, _)| *name))
            }
            Self::Call => words(CallKind::ALL.iter().map(|(name, _)| *name)),
            Self::Groups => "names of groups, as [\"wave\"]".into(),
            Self::Tables => "tables".into(),
        }
    }

    /// Checks a value. The caller adds what was expected.
    pub(super) fn check(&self, raw: &Raw, span: &Span) -> Result<Value, Wrong> {
        match self {
            Self::Text => text(raw).and_then(|t| match t.trim() {
                "" => Err(wrong("blank")),
                t => Ok(Value::Text(t.to_owned())),
            }),
            Self::Name => text(raw).and_then(name),
            Self::Cgroup => text(raw).and_then(cgroup),
            Self::Whole { min, max, .. } => whole(raw, *min, *max),
            Self::Number { min, max, .. } => number(raw, *min, *max),
            Self::CpuList => cpu_list(raw),
            Self::CpuMask => cpu_mask(raw),
            Self::Policy => one_of(raw, &Policy::ALL).map(Value::Policy),
            Self::Call => one_of(raw, &CallKind::ALL).map(Value::Call),
            Self::Groups => groups(raw, span),
            Self::Tables => Err(wrong(raw.shown())),
        }
    }
}

impl Raw {
    /// As the user should recognise it.
    fn shown(&self) -> String {
        match self {
            Self::Text(t) => format!("{:?}", short(t)),
            Self::Word(t) => short(t).escape_debug().to_string(),
            Self::Whole { digits, radix: 16 } => format!("0x{}", short(digits)),
            Self::Whole { digits, radix: 10 } => short(digits),
            Self::Whole { digits, radix } => format!("{} of base {radix}", short(digits)),
            Self::Number(n) => n.to_string(),
            Self::List(_) => "a list".into(),
            Self::Other(what) => (*what).into(),
        }
    }
}

fn short(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}...", &text[..cut]),
        None => text.to_owned(),
    }
}

fn words(all: impl Iterator<Item = &'static str>) -> String {
    format!("one of {}", all.collect::<Vec<_>>().join(", "))
}

fn text(raw: &Raw) -> Result<&str, Wrong> {
    match raw {
        Raw::Text(t) | Raw::Word(t) => Ok(t),
        Raw::Whole { .. } | Raw::Number(_) => Err(wrong(raw.shown()).help("put it in quotes")),
        _ => Err(wrong(raw.shown())),
    }
}

fn name(text: &str) -> Result<Value, Wrong> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
    match (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(allowed) {
        true => Ok(Value::Text(text.to_owned())),
        false => Err(wrong(format!("{:?}", short(text)))),
    }
}

/// Without a dot in it, no path can leave the run's cgroup or name a file of the kernel.
fn cgroup(text: &str) -> Result<Value, Wrong> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let part = |p: &str| !p.is_empty() && p.chars().all(allowed);
    match text.len() <= LONGEST_PATH && text.split('/').all(part) {
        true => Ok(Value::Text(text.to_owned())),
        false => Err(wrong(format!("{:?}", short(text)))),
    }
}

fn whole(raw: &Raw, min: i128, max: i128) -> Result<Value, Wrong> {
    let value = match raw {
        Raw::Whole { digits, radix } => i128::from_str_radix(digits, *radix).ok(),
        Raw::Text(t) if t.trim().parse::<f64>().is_ok() => {
            return Err(wrong(raw.shown()).help("write it without quotes"));
        }
        _ => None,
    };
    match value {
        Some(v) if (min..=max).contains(&v) => Ok(Value::Whole(v)),
        _ => Err(wrong(raw.shown())),
    }
}

fn number(raw: &Raw, min: f64, max: f64) -> Result<Value, Wrong> {
    let value = match raw {
        Raw::Whole { digits, radix } => {
            i128::from_str_radix(digits, *radix).map_or(f64::NAN, |v| v as f64)
        }
        Raw::Number(n) => *n,
        Raw::Text(t) if t.trim().parse::<f64>().is_ok() => {
            return Err(wrong(raw.shown()).help("write it without quotes"));
        }
        _ => f64::NAN,
    };
    match (min..=max).contains(&value) {
        true => Ok(Value::Number(value)),
        false => Err(wrong(raw.shown())),
    }
}

fn cpu_list(raw: &Raw) -> Result<Value, Wrong> {
    let Raw::Text(text) = raw else {
        return Err(wrong(raw.shown()).help("put the list in quotes"));
    };
    if text.len() > LONGEST_LIST {
        return Err(wrong(raw.shown()).help("it is too long"));
    }
    let mut is_in = [false; MOST_CPU as usize + 1];
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bound = |t: &str| t.trim().parse::<u32>().ok().filter(|cpu| *cpu <= MOST_CPU);
        match (bound(first), bound(last)) {
            (Some(first), Some(last)) if first <= last => {
                is_in[first as usize..=last as usize].fill(true);
            }
            _ => return Err(wrong(raw.shown())),
        }
    }
    Ok(Value::Cpus(Cpus(
        (0..).zip(is_in).filter_map(|(cpu, is_in)| is_in.then_some(cpu)).collect(),
    )))
}

fn cpu_mask(raw: &Raw) -> Result<Value, Wrong> {
    let digits = match raw {
        Raw::Whole { digits, radix: 16 } => digits.as_str(),
        Raw::Text(t) if t.starts_with("0x") || t.starts_with("0X") => &t[2..],
        Raw::Whole { digits, .. } => {
            return Err(wrong(raw.shown()).help(format!("write 0x{digits} if that is the mask")));
        }
        _ => return Err(wrong(raw.shown())),
    };
    let digits = digits.trim_start_matches('0');
    if digits.len() > (MOST_CPU as usize + 1) / 4 {
        return Err(wrong(raw.shown()));
    }
    let mut cpus = BTreeSet::new();
    for (place, digit) in (0u32..).zip(digits.chars().rev()) {
        let Some(bits) = digit.to_digit(16) else { return Err(wrong(raw.shown())) };
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| place * 4 + bit));
    }
    match cpus.last() {
        None => Err(wrong(raw.shown()).help("a mask without any CPU lets the task run nowhere")),
        Some(_) => Ok(Value::Cpus(Cpus(cpus))),
    }
}

fn one_of<T: Copy>(raw: &Raw, known: &[(&'static str, T)]) -> Result<T, Wrong> {
    let text = text(raw)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == text) {
        return Ok(*value);
    }
    let bare = text.strip_prefix("SCHED_").unwrap_or(text);
    let near = nearest(bare, known.iter().map(|(name, _)| *name));
    let wrong = wrong(raw.shown());
    Err(match near {
        Some(near) => wrong.help(format!("did you mean {near}?")),
        None => wrong,
    })
}

/// A list of names, or a single one.
fn groups(raw: &Raw, span: &Span) -> Result<Value, Wrong> {
    let one = |raw: &Raw, span: &Span| Ok((text(raw)?.to_owned(), span.clone()));
    match raw {
        Raw::Text(_) => Ok(Value::Groups(vec![one(raw, span)?])),
        Raw::List(list) if list.is_empty() => Err(wrong("an empty list")),
        Raw::List(list) => {
            let names: Result<_, Wrong> = list.iter().map(|(raw, span)| one(raw, span)).collect();
            Ok(Value::Groups(names?))
        }
        _ => Err(wrong(raw.shown())),
    }
}
