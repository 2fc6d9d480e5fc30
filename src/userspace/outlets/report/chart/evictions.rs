// SPDX-License-Identifier: GPL-2.0-only
//! Evictions per second by cause, over time.

use std::collections::BTreeMap;

use anyhow::Result;
use page::chart::{Chart, Grid};
use page::palette::{REST, SERIES, series};

use super::{Rows, Scale, Step, band};
use crate::outlets::report::gather::{Recorded, Span};
use crate::outlets::words::{digits, number, pct};

const ROW: u32 = 220;
/// What has no colour of its own, or no known cause.
const OTHER: &str = "all others";

/// `None`: there were none.
pub fn chart(recorded: &Recorded) -> Result<Option<Chart>> {
    let spans = &recorded.spans;
    let all: f64 = spans.iter().map(|span| span.evictions).sum();
    if all < 0.5 {
        return Ok(None);
    }
    let causes = causes(spans);
    let named: Vec<&str> = causes.iter().take(SERIES.len()).map(|(name, _)| *name).collect();
    let mut legend: Vec<(String, String)> =
        named.iter().enumerate().map(|(i, name)| (series(i).written(), (*name).into())).collect();
    legend.push((REST.written(), OTHER.into()));
    let chart = Chart {
        id: "evictions".into(),
        class: "evictions",
        title: "Evictions per second, by what the task was about to do".into(),
        desc: "Stacked over time: the most frequent causes each, above them all others.".into(),
        note: "All others: causes without a colour of their own, tasks that ended before their \
               causes were told, and all of the first interval, before which nothing is known."
            .into(),
        legend,
        data: table(recorded, &causes, all),
        ..Chart::default()
    };
    let most = spans.iter().map(|span| span.evictions / span.len_s()).fold(0.0, f64::max);
    let drawn = chart.drawn(
        |_| Rows::height(1, ROW),
        |area, _| {
            let rows = Rows { area, n: 1, px: ROW, until_s: recorded.len_s() };
            let place = rows.row(
                0,
                "evictions per second",
                Scale::Linear(most * 1.05),
                (6, &|v| digits(*v)),
            )?;
            let mut low = vec![0.0; spans.len()];
            for (nth, cause) in named.iter().map(Some).chain([None]).enumerate() {
                let steps = spans.iter().zip(&mut low).map(|(span, low)| {
                    let rate = match cause {
                        Some(cause) => {
                            span.causes.get(*cause).copied().unwrap_or(0.0) / span.len_s()
                        }
                        None => (span.evictions / span.len_s() - *low).max(0.0),
                    };
                    let step = Step {
                        begin_s: span.begin_s,
                        end_s: span.end_s,
                        low: *low,
                        high: *low + rate,
                    };
                    *low += rate;
                    step
                });
                let colour = if cause.is_some() { series(nth) } else { REST };
                band(area, &place, &steps.collect::<Vec<_>>(), colour)?;
            }
            Ok(())
        },
    );
    drawn.map(Some)
}

/// How many by cause, the most frequent first.
fn causes(spans: &[Span]) -> Vec<(&str, f64)> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (cause, n) in spans.iter().flat_map(|span| &span.causes) {
        *sums.entry(cause).or_default() += n;
    }
    let mut causes: Vec<(&str, f64)> = sums.into_iter().collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes
}

fn table(recorded: &Recorded, causes: &[(&str, f64)], all: f64) -> Grid {
    let row = |name: &str, n: f64, most: f64| {
        let rate = digits(n / recorded.len_s().max(1e-9));
        vec![name.to_owned(), number(n.round() as u64), pct(n * 100.0 / all), rate, digits(most)]
    };
    let peak = |of: &dyn Fn(&Span) -> f64| {
        recorded.spans.iter().map(|span| of(span) / span.len_s()).fold(0.0, f64::max)
    };
    let of_cause = |(cause, n): &(&str, f64)| {
        row(cause, *n, peak(&|span| span.causes.get(*cause).copied().unwrap_or(0.0)))
    };
    let mut rows: Vec<Vec<String>> = causes.iter().map(of_cause).collect();
    rows.push(row("all", all, peak(&|span| span.evictions)));
    Grid::new(&["cause", "evictions", "share", "mean 1/s", "most 1/s"], rows)
}
