// SPDX-License-Identifier: GPL-2.0-only
//! A comparison: the figures by scheduler with ratios to the first.

use super::{Style, heading, item, notes, paragraph, section};
use crate::outlets::units::text;
use crate::result::comparison::{Comparison, Figure, Ratio};

/// Set behind the best; told apart without colour.
const BEST: &str = " *";

/// A comparison.
#[must_use]
pub fn render(comparison: &Comparison, style: Style) -> String {
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
    for group in groups(&comparison.figures) {
        let of = |f: &&Figure| f.group.as_deref() == group;
        let figures: Vec<&Figure> = comparison.figures.iter().filter(of).collect();
        let name = group.map_or_else(|| "whole run".into(), |g| format!("group {g}"));
        let mut table =
            style.table(&["figure", "scheduler", "mean", "± stdev", "ratio"], &["scheduler"]);
        for figure in figures {
            let best = figure.best();
            for (i, under) in comparison.unders.iter().enumerate() {
                let title = if i == 0 { &*figure.title } else { "" };
                let known = |value: Option<f64>| value.map_or("?".into(), |v| text(v, figure.unit));
                let mark = if best.contains(&i) { BEST } else { "  " };
                let strong = |t: String| Style::cell(&t, best.contains(&i));
                let stdev = figure.stdev[i].map_or(String::new(), |v| text(v, figure.unit));
                table.add_row([
                    Style::cell(title, false),
                    Style::cell(under, false),
                    strong(known(figure.mean[i]) + mark),
                    Style::cell(&stdev, false),
                    Style::cell(&figure.ratio[i].map_or("-".into(), |r| ratio(r, i)), false),
                ]);
            }
        }
        section(&mut out, style, &name, &table);
    }
    out += "\n";
    out += &paragraph(
        "*: best, with what the runs cannot tell from it. ratio: to the first scheduler's mean, ± its \
         standard error.",
        style.width,
    );
    // Of the last run: they differ by machine and kernel, not by scheduler.
    let sources = comparison.runs.iter().flatten().last().map(|run| run.sources.clone());
    let sources = sources.unwrap_or_default();
    notes(&mut out, style, &comparison.warnings, &comparison.missing, &sources);
    out
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
