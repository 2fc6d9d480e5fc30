// SPDX-License-Identifier: GPL-2.0-only
//! The rules in force, in their order: the first that is about a task decides.

mod matching;

use super::facts::Facts;
use crate::config::rules::Rule;
use crate::control::{RuleShown, Treatment};
use crate::daemon::scheduler::news::Kind;

/// A rule, and what came of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The rule.
    pub rule: Rule,
    /// Where it is written.
    pub from: String,
}

impl Entry {
    /// What is unwise about it, in words.
    pub fn doubt(&self) -> Option<String> {
        self.rule.trusts_names().then(|| {
            format!(
                "{}: class = \"rt1\" by names alone, which tasks choose themselves: a task of any \
                 user can become RT1+. Say user or cgroup, too",
                self.from
            )
        })
    }
}

/// The rules in their order.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    entries: Vec<Entry>,
}

/// What rules say of a task.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The rule that decided, from 1; `None`: none is about the task.
    pub nr: Option<usize>,
    /// How it is to be treated.
    pub treatment: Treatment,
    /// Have rules nothing against its adoption?
    pub may_adopt: bool,
}

impl Rules {
    /// The rules of `entries`, in this order.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What is unwise about them, in words.
    pub fn doubts(&self) -> Vec<String> {
        self.entries.iter().filter_map(Entry::doubt).collect()
    }

    /// What they say of a task.
    pub fn verdict(&self, task: &Facts) -> Verdict {
        let found = self.entries.iter().position(|entry| matching::is_about(&entry.rule, task));
        let Some(Entry { rule, .. }) = found.and_then(|at| self.entries.get(at)) else {
            let treatment = Treatment::default();
            return Verdict { nr: None, treatment, may_adopt: true };
        };
        Verdict {
            nr: found.map(|at| at + 1),
            treatment: rule.treatment(),
            may_adopt: rule.adopt != Some(false),
        }
    }

    /// What has to be heard of for the verdicts to stay true.
    ///
    /// A child is treated as its parent is until there are other news of it, so forks matter only
    /// where a rule can tell the two apart.
    pub fn wants(&self) -> Vec<Kind> {
        let any = |says: fn(&Rule) -> bool| self.entries.iter().any(|entry| says(&entry.rule));
        let by_id = any(|rule| rule.pid.is_some() || rule.tgid.is_some() || rule.parent.is_some());
        // a child of a real-time task need not be one (SCHED_RESET_ON_FORK)
        let by_policy = any(|rule| rule.policy.is_some());
        [
            (by_id || by_policy, &[Kind::Fork, Kind::ForkRt][..]),
            (!self.is_empty(), &[Kind::Exec]),
            (any(|rule| rule.comm.is_some() || rule.comm_regex.is_some()), &[Kind::Name]),
            (any(|rule| rule.cgroup.is_some()), &[Kind::Cgroup]),
            (by_policy, &[Kind::ToRt, Kind::FromRt]),
        ]
        .iter()
        .filter(|(wanted, _)| *wanted)
        .flat_map(|(_, kinds)| kinds.iter().copied())
        .collect()
    }

    /// For a list.
    pub fn shown(&self) -> Vec<RuleShown> {
        let shown = |(at, entry): (usize, &Entry)| RuleShown {
            nr: at + 1,
            from: entry.from.clone(),
            rule: entry.rule.clone(),
        };
        self.entries.iter().enumerate().map(shown).collect()
    }
}

#[cfg(test)]
mod tests;
