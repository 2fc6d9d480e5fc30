// SPDX-License-Identifier: GPL-2.0-only
//! What came of the trials of each scenario on each kernel, and the figures that it printed: the
//! tables of a saved report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::marked;
use crate::figure::{FIGURE, Figure};

/// By kernel and scenario.
#[derive(Default)]
pub struct Results(BTreeMap<(String, String), Trials>);

#[derive(Default)]
struct Trials {
    passed: usize,
    again: usize,
    /// Why it cannot run there.
    skipped: Option<String>,
    secs: Vec<f64>,
    /// In the order in which they were first printed.
    figures: Vec<Series>,
}

/// The values of one figure.
struct Series {
    first: Figure,
    values: Vec<f64>,
}

/// Takes the figures out of a scenario's output; returns the rest.
#[must_use]
pub fn take(output: &str) -> (Vec<Figure>, String) {
    marked::take(output, FIGURE, |said| serde_json::from_str(said).ok())
}

impl Results {
    /// A trial with a verdict. What a failed one printed counts, too: without it the figures would
    /// be those of good days.
    pub fn add(
        &mut self,
        kernel: &str,
        scenario: &str,
        passed: bool,
        secs: f64,
        figures: Vec<Figure>,
    ) {
        let trials = self.of(kernel, scenario);
        trials.passed += usize::from(passed);
        trials.secs.push(secs);
        for figure in figures {
            let Ok(value) = figure.value.parse() else { continue };
            match trials.figures.iter_mut().find(|s| s.first.name == figure.name) {
                Some(series) => series.values.push(value),
                None => trials.figures.push(Series { first: figure, values: vec![value] }),
            }
        }
    }

    /// It cannot run there.
    pub fn skipped(&mut self, kernel: &str, scenario: &str, why: &str) {
        self.of(kernel, scenario).skipped = Some(why.into());
    }

    /// A trial that was none, and is tried again.
    pub fn again(&mut self, kernel: &str, scenario: &str) {
        self.of(kernel, scenario).again += 1;
    }

    fn of(&mut self, kernel: &str, scenario: &str) -> &mut Trials {
        self.0.entry((kernel.into(), scenario.into())).or_default()
    }

    /// Two tables of words, for tests/documents/readme.rs and people. Empty without trials.
    #[must_use]
    pub fn tables(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut text = format!("{:<40} {:>8} {:>7}   seconds\n", "trials", "passed", "again");
        for ((kernel, scenario), t) in &self.0 {
            let [low, median, high] = spread(&t.secs, 1);
            let name = format!("{kernel} {scenario}");
            let passed = format!("{} of {}", t.passed, t.secs.len());
            let secs = match &t.skipped {
                Some(why) if t.secs.is_empty() => format!("skipped: {why}"),
                _ => format!("{median} ({low} to {high})"),
            };
            let _ = writeln!(text, "{name:<40} {passed:>8} {:>7}   {secs}", t.again);
        }
        let _ = writeln!(
            text,
            "\n{:<40} {:>3} {:>10} {:>10} {:>10} unit, order",
            "figures", "n", "lowest", "median", "highest"
        );
        for ((kernel, scenario), t) in &self.0 {
            for Series { first, values } in &t.figures {
                let decimals = first.value.split_once('.').map_or(0, |(_, part)| part.len());
                let [low, median, high] = spread(values, decimals);
                let name = format!("{kernel} {scenario} {}", first.name);
                let n = values.len();
                let row = format!(
                    "{name:<40} {n:>3} {low:>10} {median:>10} {high:>10} {} {}",
                    first.unit, first.order
                );
                let _ = writeln!(text, "{}", row.trim_end());
            }
        }
        text
    }
}

/// The lowest, the median and the highest value, with so many decimals.
fn spread(values: &[f64], decimals: usize) -> [String; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return Default::default() };
    let median = f64::midpoint(sorted[last / 2], sorted[last.div_ceil(2)]);
    [sorted[0], median, sorted[last]].map(|value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::{FIGURE, Results, take};

    const ODD: &str = r#"{"name":"ratio","value":"1.40","unit":"×","order":"ABBA, 5 s each"}"#;

    #[test]
    fn figures_are_taken_out() {
        let (figures, rest) = take(&format!("begins\n{FIGURE}{ODD}\n{FIGURE}{{}}\nends\n"));
        assert_eq!(rest, format!("begins\n{FIGURE}{{}}\nends\n"), "what is no figure stays");
        assert_eq!((figures.len(), figures[0].value.as_str()), (1, "1.40"));
    }

    #[test]
    fn tables_have_the_spread() {
        let mut results = Results::default();
        assert_eq!(results.tables(), "");
        for (value, passed) in [("1.50", true), ("1.40", true), ("1.90", false), ("1.62", true)] {
            let (figures, _) = take(&format!("{FIGURE}{}", ODD.replace("1.40", value)));
            results.add("6.18", "wakes", passed, 2.0, figures);
        }
        results.again("6.18", "wakes");
        let tables = results.tables();
        let rows: Vec<Vec<&str>> =
            tables.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["6.18", "wakes", "3", "of", "4", "1", "2.0", "(2.0", "to", "2.0)"]);
        let row = "6.18 wakes ratio 4 1.40 1.56 1.90 × ABBA, 5 s each";
        assert_eq!(rows[4].join(" "), row, "the median of four is the mean of two");
    }
    #[test]
    fn what_cannot_run_is_told_with_the_reason() {
        let mut results = Results::default();
        results.skipped("6.18", "sleeps", "no state 'mem'");
        let tables = results.tables();
        let row: Vec<_> = tables.lines().nth(1).expect("a row").split_whitespace().collect();
        assert_eq!(row.join(" "), "6.18 sleeps 0 of 0 0 skipped: no state 'mem'");
    }
}
