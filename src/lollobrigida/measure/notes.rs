// SPDX-License-Identifier: GPL-2.0-only
//! What is to be told about a run besides its figures.

use std::collections::BTreeMap;

use crate::result::{Missing, Warning};

/// Gathered while a run is made; each thing is told once.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// [`crate::result::Run::missing`].
    pub missing: Vec<Missing>,
    /// [`crate::result::Run::warnings`].
    pub warnings: Vec<Warning>,
    /// [`crate::result::Run::sources`].
    pub sources: BTreeMap<String, String>,
}

impl Notes {
    /// `what` could not be had or set; `why` says also what would make it possible.
    pub fn missing(&mut self, what: &str, why: impl Into<String>) {
        let missing = Missing { what: what.into(), why: why.into() };
        if !self.missing.contains(&missing) {
            self.missing.push(missing);
        }
    }

    /// The value, or a note that `what` is missing and why.
    pub fn some<T>(&mut self, what: &str, value: Result<T, String>) -> Option<T> {
        value.map_err(|why| self.missing(what, why)).ok()
    }

    /// Something may make the figures worth less.
    pub fn warn(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// `what` was had by `how`.
    pub fn source(&mut self, what: &str, how: &str) {
        self.sources.insert(what.into(), how.into());
    }
}
