// SPDX-License-Identifier: GPL-2.0-only
//! The file that rules are written in.

use std::path::PathBuf;

use super::rules::Entry;
use crate::config::rules::{self, CONFIG};

/// The file, which need not exist unless the user named it.
#[derive(Clone, Debug)]
pub struct Source {
    path: PathBuf,
    named: bool,
}

impl Source {
    /// The file of `--config`, or where rules are looked for without that.
    pub fn new(named: Option<PathBuf>) -> Self {
        Self { named: named.is_some(), path: named.unwrap_or_else(|| CONFIG.into()) }
    }

    /// Is there a file, or should there be one?
    pub fn is_used(&self) -> bool {
        self.named || self.path.exists()
    }

    /// The rules in it.
    ///
    /// # Errors
    /// The first line that is wrong, and why, or that the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, String> {
        if !self.is_used() {
            return Ok(Vec::new());
        }
        let place = |line| format!("{}, line {line}", self.path.display());
        let rules = rules::read(&self.path)?;
        Ok(rules.into_iter().map(|(line, rule)| Entry { rule, from: place(line) }).collect())
    }

    /// For messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}
