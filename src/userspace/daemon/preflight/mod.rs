// SPDX-License-Identifier: GPL-2.0-only
//! Is this machine fit? Looks first ([`Facts`]), judges then ([`judge`]), and
//! changes nothing.

mod checks;
mod facts;

pub use checks::judge;
pub use facts::{Facts, SchedExt};

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// It runs, but a promise is not kept.
    Warn,
    /// It cannot run.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// What was looked at, in a word or two.
    pub subject: &'static str,
    /// What was seen; if it is not ok, why it matters and what to do.
    pub text: String,
}

impl Finding {
    /// A finding of the given severity.
    pub fn new(severity: Severity, subject: &'static str, text: impl Into<String>) -> Self {
        Self { severity, subject, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<5} {:<12} {}", self.severity, self.subject, self.text)
    }
}

/// The errors among `findings`, one to a line; `None` if there are none.
pub fn errors(findings: &[Finding]) -> Option<String> {
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| format!("{}: {}", finding.subject, finding.text))
        .collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}
