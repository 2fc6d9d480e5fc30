// SPDX-License-Identifier: GPL-2.0-only
//! What is left of others' kernel work on RT CPUs, and how quickly it leaves.

use anyhow::Result;
use page::chart::{Chart, Grid};
use page::palette::SERIES;

use super::{Rows, Scale, Step, band, line};
use crate::outlets::report::gather::{Recorded, Span, Times};
use crate::outlets::words::{digits, number, us};

const ROW: u32 = 130;

/// Time in kernel sections on RT CPUs. `None`: there was none.
pub fn residence(recorded: &Recorded) -> Result<Option<Chart>> {
    let most = recorded.spans.iter().map(|span| span.residence_us_per_s).fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(None);
    }
    let len_s = recorded.len_s().max(1e-9);
    let sum: f64 = recorded.spans.iter().map(|s| s.residence_us_per_s * s.len_s()).sum();
    let row = |(id, longest_us): (&usize, f64)| vec![format!("CPU {id}"), us(longest_us)];
    let mut rows: Vec<Vec<String>> = recorded
        .machine
        .cpus
        .iter()
        .filter(|(_, cpu)| cpu.is_rt > 0)
        .map(|(id, cpu)| row((id, cpu.residence_max_us)))
        .collect();
    rows.push(vec!["mean time per second, all".into(), us(sum / len_s)]);
    rows.push(vec!["most time per second, all".into(), us(most)]);
    let chart = Chart {
        id: "residence".into(),
        class: "residence",
        title: "Others' kernel work left on RT CPUs".into(),
        desc:
            "Over time: microseconds in each second that tasks which could leave spent in kernel \
               sections on RT CPUs, all of them together."
                .into(),
        note: "The longest section of each CPU, in the table, is since the scheduler began.".into(),
        data: Grid::new(&["RT CPUs", "longest section, or time"], rows),
        ..Chart::default()
    };
    let drawn = chart.drawn(
        |_| Rows::height(1, ROW),
        |area, _| {
            let rows = Rows { area, n: 1, px: ROW, until_s: recorded.len_s() };
            let text = |v: &f64| digits(*v);
            let place = rows.row(0, "µs per second", Scale::Linear(most * 1.05), (5, &text))?;
            let step = |span: &Span| Step {
                begin_s: span.begin_s,
                end_s: span.end_s,
                low: 0.0,
                high: span.residence_us_per_s,
            };
            let steps: Vec<Step> = recorded.spans.iter().map(step).collect();
            band(area, &place, &steps, SERIES[0])
        },
    );
    drawn.map(Some)
}

/// A line of percentiles: its colour, and where it is at a span.
type Line = (usize, fn(&Span) -> Option<f64>);

/// How long evictions took. `None`: there were none.
pub fn arrival(recorded: &Recorded) -> Result<Option<Chart>> {
    let spans = &recorded.spans;
    // one by one they are exact; else only what the CPUs count is known
    let lines: &[Line] = if recorded.has_events {
        &[
            (LINES[0].0, |span| span.arrivals.quantile_us(0.5)),
            (LINES[1].0, |span| span.arrivals.quantile_us(0.99)),
            (LINES[2].0, |span| span.arrivals.quantile_us(1.0).map(|_| span.arrivals.max_us)),
        ]
    } else {
        &[
            (LINES[0].0, |span| span.arrival_us.map(|(p50, _)| p50)),
            (LINES[1].0, |span| span.arrival_us.map(|(_, p99)| p99)),
        ]
    };
    let values = || lines.iter().flat_map(|(_, of)| spans.iter().filter_map(of));
    let Some((least, most)) = values().reduce(f64::min).zip(values().reduce(f64::max)) else {
        return Ok(None);
    };
    let legend = LINES.iter().take(lines.len());
    let chart = Chart {
        id: "arrival".into(),
        class: "arrival",
        title: "How long an eviction takes".into(),
        desc:
            "Over time on a logarithmic axis: from the attempt on the RT CPU until the task runs \
               on an NRT CPU."
                .into(),
        note: if recorded.has_events {
            String::new()
        } else {
            "As the CPUs count them; with scx_artis record --events each eviction is known.".into()
        },
        legend: legend.map(|(i, name)| (SERIES[*i].written(), (*name).into())).collect(),
        data: times(recorded, least, most),
        ..Chart::default()
    };
    let scale = Scale::decades(least, most);
    let drawn = chart.drawn(
        |_| Rows::height(1, ROW + 50),
        |area, _| {
            let rows = Rows { area, n: 1, px: ROW + 50, until_s: recorded.len_s() };
            let place = rows.row(0, "from attempt to running", scale, (6, &|v| us(*v)))?;
            for (colour, of) in lines {
                let middle = |span: &Span| (span.begin_s + span.end_s) / 2.0;
                let points: Vec<_> = spans.iter().map(|span| (middle(span), of(span))).collect();
                line(area, &place, &points, SERIES[*colour])?;
            }
            Ok(())
        },
    );
    drawn.map(Some)
}

/// The times of all evictions; without events the least and the most that is drawn.
fn times(recorded: &Recorded, least: f64, most: f64) -> Grid {
    if !recorded.has_events {
        let row = vec!["running on an NRT CPU".into(), us(least), us(most)];
        return Grid::new(&["from the attempt to", "least median", "most 99 %"], vec![row]);
    }
    let row = |name: &str, of: fn(&Span) -> &Times| {
        let mut all = Times::default();
        recorded.spans.iter().for_each(|span| all.add(of(span)));
        let quantile = |share| all.quantile_us(share).map_or_else(String::new, us);
        let quantiles = [0.5, 0.9, 0.99].map(quantile);
        let head = [name.to_owned(), number(all.hist.count())];
        head.into_iter().chain(quantiles).chain([us(all.max_us)]).collect()
    };
    let rows = vec![
        row("leaving the RT CPU", |span| &span.departures),
        row("running on an NRT CPU", |span| &span.arrivals),
    ];
    Grid::new(&["from the attempt to", "evictions", "median", "90 %", "99 %", "longest"], rows)
}

/// Colour and meaning of the lines of percentiles.
pub const LINES: [(usize, &str); 3] = [(0, "median"), (4, "99th percentile"), (1, "longest")];
