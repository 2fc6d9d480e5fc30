// SPDX-License-Identifier: GPL-2.0-only
//! Findings of the auditor that known faults of the scheduler explain. Any other one fails its
//! scenario; these are counted in the sum of a run. An entry goes with its fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::{Result, ensure};

use super::marked;
use crate::auditor::{Finding, Report, Rule};

/// A line with this begin tells the host of a known finding: its rule and how often.
const FOUND: &str = "::audit ";

/// What a known fault has the auditor find.
#[derive(Debug)]
pub struct Explained {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The scenarios in which it does; none: any.
    pub scenarios: &'static [&'static str],
    /// The fault.
    pub point: &'static str,
    /// Since when it is listed, as YYYY-MM-DD.
    pub since: &'static str,
    /// How many runs of scenarios it was found in, of how many.
    pub seen: (u32, u32),
}

/// The list: empty since 2026-11-27.
pub const EXPLAINED: &[Explained] = &[];

/// What a scenario is about, and no fault: rule, scenario, why.
const MEANT: &[(Rule, &str, &str)] =
    &[(Rule::Standstill, "rt1_order", "RT1+ tasks wait for higher ones: docs/rt1.md")];

fn is_meant(rule: Rule, scenario: &str) -> bool {
    MEANT.iter().any(|(r, s, _)| (*r, *s) == (rule, scenario))
}

fn explained(list: &'static [Explained], rule: Rule, scenario: &str) -> Option<&'static Explained> {
    let here = |e: &&Explained| e.scenarios.is_empty() || e.scenarios.contains(&scenario);
    list.iter().filter(here).find(|e| e.rule == rule)
}

/// Says in the guest what was found, and fails for what the list does not explain.
///
/// # Errors
/// Names the first such finding.
pub fn ensure_explained(scenario: &str, report: &Report) -> Result<()> {
    let known = |f: &&Finding| explained(EXPLAINED, f.rule, scenario).is_some();
    let found = report.findings.iter().filter(|f| !is_meant(f.rule, scenario));
    let (known, new): (Vec<&Finding>, Vec<&Finding>) = found.partition(known);
    for f in known {
        println!("{FOUND}{} {}", f.rule.name(), f.times);
    }
    let more = new.len().saturating_sub(1);
    ensure!(new.is_empty(), "the auditor found {} (and {more} more)", new[0]);
    Ok(())
}

/// The known findings of a run of many scenarios.
#[derive(Default)]
pub struct Audit {
    ran: BTreeSet<&'static str>,
    found: BTreeMap<(Rule, &'static str), u64>,
}

impl Audit {
    /// Takes what was found out of a scenario's output; returns the rest.
    pub fn take(&mut self, scenario: &'static str, output: &str) -> String {
        self.ran.insert(scenario);
        let (found, rest) = marked::take(output, FOUND, |said| {
            let (rule, times) = said.split_once(' ')?;
            Some((Rule::named(rule)?, times.parse::<u64>().ok()?))
        });
        for (rule, times) in found {
            *self.found.entry((rule, scenario)).or_default() += times;
        }
        rest
    }

    /// For the sum of the run: how often which known faults were found, and which entries of the
    /// list were not, though one of their scenarios ran.
    #[must_use]
    pub fn sum(&self) -> String {
        self.sum_of(EXPLAINED)
    }

    fn sum_of(&self, list: &'static [Explained]) -> String {
        let mut text = String::new();
        let mut rules = BTreeMap::<Rule, (u64, Vec<&str>)>::new();
        for ((rule, scenario), times) in &self.found {
            let (sum, names) = rules.entry(*rule).or_default();
            *sum += times;
            names.push(scenario);
        }
        if !rules.is_empty() {
            let all: u64 = self.found.values().sum();
            let parts: Vec<String> = rules
                .iter()
                .map(|(r, (n, names))| format!("{} {n} in {}", r.name(), names.join(" ")))
                .collect();
            let _ = writeln!(text, "audit: {all} findings of known faults ({})", parts.join("; "));
        }
        for e in list {
            let here = |s: &&str| e.scenarios.is_empty() || e.scenarios.contains(s);
            let found = self.found.keys().any(|(rule, s)| *rule == e.rule && here(s));
            if !found && self.ran.iter().any(here) {
                let (rule, point) = (e.rule.name(), e.point);
                let _ =
                    writeln!(text, "audit: listed since {}, not found: {rule}, {point}", e.since);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Audit, EXPLAINED, Explained, Rule, explained};
    use crate::scenarios::find;

    const LIST: &[Explained] = &[
        Explained {
            rule: Rule::Exit,
            scenarios: &[],
            point: "findings.md C",
            since: "2026-11-23",
            seen: (20, 20),
        },
        Explained {
            rule: Rule::Idle,
            scenarios: &["weights"],
            point: "findings.md B.1",
            since: "2026-11-23",
            seen: (1, 20),
        },
    ];

    #[test]
    fn only_what_is_listed_for_the_scenario_is_explained() {
        assert!(explained(LIST, Rule::Exit, "storms").is_some());
        assert!(explained(LIST, Rule::Idle, "weights").is_some());
        assert!(explained(LIST, Rule::Idle, "storms").is_none());
        assert!(explained(LIST, Rule::Standstill, "weights").is_none());
    }

    #[test]
    fn what_is_found_is_counted_and_what_is_not_is_said() {
        let mut audit = Audit::default();
        assert_eq!(audit.take("storms", "a\n::audit exit 3\nb\n"), "a\nb\n");
        let _ = audit.take("tally", "::audit exit 2\n");
        let sum = audit.sum_of(LIST);
        assert_eq!(sum, "audit: 5 findings of known faults (exit 5 in storms tally)\n");
        let _ = audit.take("weights", "");
        let sum = audit.sum_of(LIST);
        assert!(sum.ends_with("not found: idle, findings.md B.1\n"), "{sum}");
    }

    #[test]
    fn each_entry_is_of_scenarios_and_measured() {
        for e in EXPLAINED {
            assert!(e.scenarios.iter().all(|s| find(s).is_some()), "{e:?}");
            assert!(e.seen.0 > 0 && e.seen.0 <= e.seen.1, "{e:?}");
            assert_eq!(e.since.len(), "2026-11-22".len(), "{e:?}");
            assert!(e.point.contains(".md "), "not a point of a document: {e:?}");
        }
    }
}
