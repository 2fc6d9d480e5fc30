// SPDX-License-Identifier: GPL-2.0-only
//! Control of a running daemon: what is asked and answered, and the socket that
//! both go through.
//!
//! A client connects to [`SOCKET`], writes one [`Request`] as a line of JSON,
//! and reads one [`Reply`] as a line of JSON. The socket is not that of the
//! statistics: scx_stats does not tell who asks, and here only root may.

mod client;
mod command;
mod rule_list;
mod server;
mod table;

pub use client::ask;
pub use command::{execute, run};
pub use server::{Asked, Server};

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::rules::Rule;
use crate::config::{KNOBS, Kind, Knob, Partition, Policy};
use crate::exit::Failure;

/// Where the daemon listens: in its run directory, mode 0600.
pub const SOCKET: &str = "/run/scx_artis/control";

/// Longest request, bytes.
const REQUEST_MAX: usize = 64 * 1024;
/// How long a connected client may take to say what it wants.
const REQUEST_TIME: Duration = Duration::from_secs(2);
/// How long it may take until the daemon listens: it loads the BPF programs first.
const START_TIME: Duration = Duration::from_secs(30);
/// How long the daemon may take to do it: it is a task among those it schedules, and may have
/// to wait for a CPU.
const REPLY_TIME: Duration = Duration::from_secs(30);

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Tell everything.
    Get,
    /// Change one policy constant.
    Set {
        /// Its name, see [`Knob::name`].
        name: String,
        /// Its value as users write it.
        value: String,
    },
    /// Change the RT CPUs.
    RtCpus {
        /// A list or a mask.
        cpus: String,
    },
    /// Change the class of one task.
    Class {
        /// Its thread id.
        pid: i32,
        /// What it is to be.
        class: Class,
    },
    /// Show or change the rules.
    Rule(RuleRequest),
}

/// What to do with the rules. Their numbers begin at 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleRequest {
    /// Show them.
    List,
    /// One more.
    Add {
        /// The rule.
        rule: Box<Rule>,
        /// Before the one with this number; `None`: after all.
        before: Option<usize>,
    },
    /// One less.
    Remove {
        /// Its number.
        nr: usize,
    },
    /// As the file says now.
    Reload,
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleShown {
    /// Its number, from 1: the first that is about a task decides.
    pub nr: usize,
    /// Where it is written: a file and a line, or `ctl`.
    pub from: String,
    /// The rule.
    pub rule: Rule,
}

/// What a task of the ext class may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Firm real time: before all NRT tasks.
    Rt1 {
        /// [`Class::PRIORITIES`].
        priority: u32,
        /// Does it take turns with others of its priority?
        round_robin: bool,
    },
    /// Everything else.
    Nrt,
}

/// How a task of the ext class is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// Its class.
    pub class: Class,
    /// May it use RT CPUs, if its affinity lets it?
    pub rt_cpus: bool,
    /// By `scx_artis ctl class`: nothing else changes it then, nor what its children inherit.
    pub by_hand: bool,
}

impl Default for Treatment {
    /// As all tasks are treated of which nothing is said.
    fn default() -> Self {
        Self { class: Class::Nrt, rt_cpus: true, by_hand: false }
    }
}

impl Class {
    /// Priorities of RT1+ tasks; 99 is left to the kernel's own real-time classes.
    pub const PRIORITIES: std::ops::RangeInclusive<u32> = 1..=98;
}

/// What the daemon says to a [`Request`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Get`].
    State(State),
    /// To [`RuleRequest::List`].
    Rules(Vec<RuleShown>),
    /// To the others.
    Done {
        /// What is so now, in a sentence.
        text: String,
        /// What is unwise about it, in sentences.
        warnings: Vec<String>,
    },
    /// Nothing was changed.
    Failed {
        /// The exit code of [`Failure`] that the client is to end with.
        code: u8,
        /// Why.
        text: String,
    },
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        Self::Failed { code: failure.code(), text: failure.to_string() }
    }
}

/// All that can be changed, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The RT CPUs as a list.
    pub rt_cpus: String,
    /// The NRT CPUs as a list.
    pub nrt_cpus: String,
    /// Number of changes since the daemon began.
    pub policy_seq: u32,
    /// The policy constants by name.
    pub values: BTreeMap<String, Value>,
}

/// One policy constant. Numbers are JSON numbers, words are strings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// As it is now.
    pub value: serde_json::Value,
    /// As it is when the user says nothing.
    pub default: serde_json::Value,
    /// The unit of numbers; may be empty.
    pub unit: String,
    /// What it may be.
    #[serde(flatten)]
    pub bounds: Bounds,
    /// What it is.
    pub what: String,
}

/// What a value may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Bounds {
    /// A whole number.
    Range {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// A word.
    Words {
        /// The words.
        one_of: Vec<String>,
    },
}

impl State {
    /// The state with these CPUs and values.
    pub fn new(partition: &Partition, policy: &Policy, policy_seq: u32) -> Self {
        let value = |knob: &&Knob| (knob.name(), Value::new(knob, (knob.get)(policy)));
        Self {
            rt_cpus: partition.rt.to_string(),
            nrt_cpus: partition.nrt.to_string(),
            policy_seq,
            values: KNOBS.iter().map(value).collect(),
        }
    }
}

impl Value {
    fn new(knob: &Knob, value: u64) -> Self {
        let (json, bounds): (fn(&Knob, u64) -> serde_json::Value, _) = match &knob.kind {
            Kind::Number { range, .. } => {
                (|_, value| value.into(), Bounds::Range { min: *range.start(), max: *range.end() })
            }
            Kind::Word(words) => {
                let one_of = words.iter().map(ToString::to_string).collect();
                (|knob, value| knob.text(value).into(), Bounds::Words { one_of })
            }
        };
        Self {
            value: json(knob, value),
            // a default is valid: a test of knob.rs
            default: json(knob, knob.parse(knob.default).unwrap_or(value)),
            unit: knob.unit().to_owned(),
            bounds,
            what: knob.what.to_owned(),
        }
    }

    /// Is it what it is when the user says nothing?
    fn is_default(&self) -> bool {
        self.value == self.default
    }
}

/// A value as users write it.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
