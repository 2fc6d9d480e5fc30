// SPDX-License-Identifier: GPL-2.0-only
//! What `scx_artis ctl rule` asks for, and what a hangup does.

use super::rules::{Entry, Rules};
use super::{Classes, Informed, wrong};
use crate::config::rules::Rule;
use crate::control::{Reply, RuleRequest};
use crate::daemon::setup::Setup;
use crate::exit::Failure;

/// Where a rule is from that is in no file.
const BY_CTL: &str = "ctl";

impl Classes {
    /// Does what `request` asks for.
    ///
    /// # Errors
    /// When something is wrong with it (exit code 2) or the scheduler does not take it
    /// ([`Failure::NotTaken`]). Then the rules are as before.
    pub fn answer(
        &mut self,
        request: &RuleRequest,
        setup: &Setup,
        scheduler: &mut impl Informed,
    ) -> Result<Reply, Failure> {
        let text = match request {
            RuleRequest::List => return Ok(Reply::Rules(self.rules.shown())),
            RuleRequest::Add { rule, before } => self.add(rule, *before, setup, scheduler)?,
            RuleRequest::Remove { nr } => self.remove(*nr, setup, scheduler)?,
            RuleRequest::Reload => self.reload(setup, scheduler)?,
        };
        let warnings = match request {
            RuleRequest::Add { rule, .. } => {
                let entry = Entry { rule: (**rule).clone(), from: BY_CTL.to_owned() };
                entry.doubt().into_iter().collect()
            }
            RuleRequest::Reload => self.doubts(),
            RuleRequest::List | RuleRequest::Remove { .. } => Vec::new(),
        };
        Ok(Reply::Done { text, warnings })
    }

    /// What is unwise about the rules, in words.
    pub fn doubts(&self) -> Vec<String> {
        self.rules.doubts()
    }

    /// Are there rules, or a file where some could be?
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty() || self.source.is_used()
    }

    /// How many there are, in words.
    pub fn count(&self) -> String {
        match self.rules.entries().len() {
            1 => "1 rule".to_owned(),
            n => format!("{n} rules"),
        }
    }

    /// The rules are what the file says now, and no others. Returns what is so now, in words.
    ///
    /// # Errors
    /// When the file is wrong or the scheduler does not take it. Then the rules are as before.
    pub fn reload(
        &mut self,
        setup: &Setup,
        scheduler: &mut impl Informed,
    ) -> Result<String, Failure> {
        let as_before = |text: String| wrong(format!("{text}; the rules are as before"));
        let entries = self.source.entries().map_err(as_before)?;
        let gone = self.rules.entries().iter().filter(|entry| entry.from == BY_CTL).count();
        let (count, file) = (entries.len(), self.source.name());
        self.put_in_force(entries, setup, scheduler)?;
        let gone = match gone {
            0 => String::new(),
            n => format!("; {n} that ctl had added {} gone", if n == 1 { "is" } else { "are" }),
        };
        Ok(format!("{} in force, as {file} says{gone}", are(count)))
    }

    fn add(
        &mut self,
        rule: &Rule,
        before: Option<usize>,
        setup: &Setup,
        scheduler: &mut impl Informed,
    ) -> Result<String, Failure> {
        rule.check().map_err(wrong)?; // a client of another version may know other bounds
        let mut entries = self.rules.entries().to_vec();
        let at = match before {
            None => entries.len(),
            Some(nr) => self.place_of(nr)?,
        };
        entries.insert(at, Entry { rule: rule.clone(), from: BY_CTL.to_owned() });
        let count = entries.len();
        self.put_in_force(entries, setup, scheduler)?;
        Ok(format!("rule {} is in force, of {count}", at + 1))
    }

    fn remove(
        &mut self,
        nr: usize,
        setup: &Setup,
        scheduler: &mut impl Informed,
    ) -> Result<String, Failure> {
        let at = self.place_of(nr)?;
        let mut entries = self.rules.entries().to_vec();
        let Entry { from, .. } = entries.remove(at);
        let count = entries.len();
        self.put_in_force(entries, setup, scheduler)?;
        let back = match from.as_str() {
            BY_CTL => "",
            _ => "; a reload brings it back, for the file still has it",
        };
        Ok(format!("rule {nr} ({from}) is removed, {} in force{back}", are(count)))
    }

    /// The index of the rule with this number.
    fn place_of(&self, nr: usize) -> Result<usize, Failure> {
        let count = self.rules.entries().len();
        let at = nr.checked_sub(1).filter(|at| *at < count);
        at.ok_or_else(|| {
            wrong(format!("there is no rule {nr}, {}; ctl rule list shows them", are(count)))
        })
    }

    fn put_in_force(
        &mut self,
        entries: Vec<Entry>,
        setup: &Setup,
        scheduler: &mut impl Informed,
    ) -> Result<(), Failure> {
        self.settle(Rules::new(entries), setup, scheduler).map_err(Failure::NotTaken)
    }
}

fn are(count: usize) -> String {
    match count {
        0 => "no rules are".to_owned(),
        1 => "1 rule is".to_owned(),
        n => format!("{n} rules are"),
    }
}
