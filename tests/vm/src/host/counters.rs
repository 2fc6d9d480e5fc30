// SPDX-License-Identifier: GPL-2.0-only
//! Does each counter of the scheduler ever count? One that no scenario moves is either not
//! tested or counts nothing.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::marked;
use crate::daemon::COUNTED;

/// The greatest value of each counter that a scheduler told at its end.
#[derive(Default)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Takes what was counted out of a scenario's output; returns the rest.
    pub fn take(&mut self, output: &str) -> String {
        let parse = |said: &str| serde_json::from_str::<Map<String, Value>>(said).ok();
        let (counted, rest) = marked::take(output, COUNTED, parse);
        for (name, value) in counted.into_iter().flatten() {
            let Some(value) = value.as_u64() else { continue };
            let most = self.0.entry(name).or_default();
            *most = value.max(*most);
        }
        rest
    }

    /// Those that were 0 at the end of every scheduler.
    fn never(&self) -> Vec<&str> {
        self.0.iter().filter(|(_, most)| **most == 0).map(|(name, _)| name.as_str()).collect()
    }

    /// Fails unless there are some, and each has counted.
    pub fn ensure_all_counted(&self) -> Result<()> {
        let (known, never) = (self.0.len(), self.never());
        ensure!(
            known > 0 && never.is_empty(),
            "of {known} counters, these were 0 in all scenarios: {never:?}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{COUNTED, Counters};

    #[test]
    fn one_that_never_counts_is_found() {
        let mut counters = Counters::default();
        let first = format!("begins\n{COUNTED}{{\"a\":0,\"b\":3}}\nends\n");
        assert_eq!(counters.take(&first), "begins\nends\n");
        assert_eq!(counters.never(), ["a"]);
        let _ = counters.take(&format!("{COUNTED}{{\"a\":1,\"b\":0,\"share\":0.5}}"));
        assert!(counters.never().is_empty() && counters.0.len() == 2);
        assert!(counters.ensure_all_counted().is_ok());
        assert!(Counters::default().ensure_all_counted().is_err());
    }
}
