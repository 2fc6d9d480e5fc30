// SPDX-License-Identifier: GPL-2.0-only
//! A comparison: the figures by scheduler with ratios to the first.

use super::{Style, heading, item, notes, paragraph, section};
use crate::outlets::units::text;
use crate::result::comparison::{Comparison, Figure, Ratio};

/// Set behind the best; told apart without colour.
const BEST: &str = " *";

/// A comparison. Of one scheduler's runs: their means and spread.
#[must_use]
pub fn render(comparison: &Comparison, style: Style) -> String {
    let alone = comparison.unders.len() == 1;
    let runs: Vec<String> = comparison.runs.iter().map(|runs| runs.len().to_string()).collect();
    let title = format!(
        "{} under {} ({} runs)",
        comparison.scene,
        comparison.unders.join(", "),
        runs.join(", ")
    );
    let mut out = heading(&title, style);
    if !comparison.good.is_empty() {
        out += &item(&format!("good: {}", comparison.good), style.width);
    }
    let columns: Vec<&Column> = COLUMNS.iter().filter(|c| !(alone && c.compares)).collect();
    let titles: Vec<&str> = columns.iter().map(|c| c.title).collect();
    for group in groups(&comparison.figures) {
        let name = group.map_or_else(|| "whole run".into(), |g| format!("group {g}"));
        let mut table = style.table(&titles, &["scheduler"]);
        for figure in comparison.figures.iter().filter(|f| f.group.as_deref() == group) {
            let best = figure.best();
            for (i, under) in comparison.unders.iter().enumerate() {
                let line = Line { figure, under, i, best: best.contains(&i) };
                let bold = |c: &Column| line.best && c.title == MEAN;
                table.add_row(columns.iter().map(|c| Style::cell(&(c.of)(&line), bold(c))));
            }
        }
        section(&mut out, style, &name, &table);
    }
    if !alone {
        out += "\n";
        out += &paragraph(
            "*: best, with what the runs cannot tell from it. ratio: to the first scheduler's mean, \
             ± its standard error.",
            style.width,
        );
    }
    // Of the last run: they differ by machine and kernel, not by scheduler.
    let sources = comparison.runs.iter().flatten().last().map(|run| run.sources.clone());
    let sources = sources.unwrap_or_default();
    notes(&mut out, style, &comparison.warnings, &comparison.missing, &sources);
    out
}

/// A figure under one of the schedulers.
struct Line<'a> {
    figure: &'a Figure,
    under: &'a str,
    /// Index of the scheduler.
    i: usize,
    best: bool,
}

struct Column {
    title: &'static str,
    /// Of no use with one scheduler.
    compares: bool,
    of: fn(&Line) -> String,
}

const MEAN: &str = "mean";

const COLUMNS: [Column; 5] = [
    Column {
        title: "figure",
        compares: false,
        of: |l| if l.i == 0 { l.figure.title.clone() } else { String::new() },
    },
    Column { title: "scheduler", compares: true, of: |l| l.under.into() },
    Column {
        title: MEAN,
        compares: false,
        of: |l| l.known(l.figure.mean[l.i], "?") + if l.best { BEST } else { "  " },
    },
    Column { title: "± stdev", compares: false, of: |l| l.known(l.figure.stdev[l.i], "") },
    Column {
        title: "ratio",
        compares: true,
        of: |l| l.figure.ratio[l.i].map_or("-".into(), |r| ratio(r, l.i)),
    },
];

impl Line<'_> {
    fn known(&self, value: Option<f64>, otherwise: &str) -> String {
        value.map_or(otherwise.into(), |v| text(v, self.figure.unit))
    }
}

/// `None` (the whole run) first, then each group once.
fn groups(figures: &[Figure]) -> Vec<Option<&str>> {
    let mut all: Vec<Option<&str>> = figures.iter().map(|f| f.group.as_deref()).collect();
    all.dedup();
    all
}

fn ratio(ratio: Ratio, of: usize) -> String {
    match ratio.spread {
        Some(spread) if of > 0 => format!("{:.3} ± {spread:.3}", ratio.of_means),
        _ => format!("{:.3}", ratio.of_means),
    }
}
