// SPDX-License-Identifier: GPL-2.0-only
//! Wake-up latency of the hard real-time tasks, over time, with the worst case of each.

use anyhow::Result;
use page::chart::{Chart, Grid, failed, label};
use page::palette::{INK, SERIES};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::residence::LINES;
use super::{Rows, Scale, line};
use crate::outlets::report::gather::{Known, Recorded, Span, Times};
use crate::outlets::words::{number, policy, us};

/// Of a task, px.
const ROW: u32 = 130;
/// Tasks that are drawn; the table has all.
const TASKS: usize = 12;

/// How good the figures are: see [`crate::model::Hist`].
const EXACTNESS: &str = "The worst case is exact; the longest of any other interval, and the \
     percentiles, are told by a histogram and may be up to twice too long.";

/// `None`: no hard real-time task woke up.
pub fn chart(recorded: &Recorded) -> Result<Option<Chart>> {
    let of_task = |known: &Known, span: &Span| -> Option<Times> {
        span.wakeups.get(&known.task.metrics.pid).cloned()
    };
    let woke = |known: &&Known| known.task.metrics.waits > 0;
    let all: Vec<&Known> = recorded.hard().into_iter().filter(woke).collect();
    let drawn: Vec<&Known> = all.iter().copied().take(TASKS).collect();
    let medians = drawn.iter().flat_map(|known| {
        recorded.spans.iter().filter_map(|span| of_task(known, span)?.quantile_us(0.5))
    });
    let Some(worst) = all.first().map(|known| known.task.metrics.wait_max_us) else {
        return Ok(None);
    };
    let scale = Scale::decades(medians.fold(worst, f64::min), worst);
    let chart = Chart {
        id: "latency".into(),
        class: "latency",
        title: "Wake-up latency of hard real-time tasks (RT0)".into(),
        desc: "For each task over time on a logarithmic axis: from its wake-up until it ran; \
               median, 99th percentile and longest of each interval. A circle marks the worst \
               case."
            .into(),
        note: match all.len() - drawn.len() {
            0 => EXACTNESS.to_owned(),
            more => format!(
                "{more} more tasks, whose worst case is shorter, are in the table only. {EXACTNESS}"
            ),
        },
        legend: LINES.iter().map(|(i, name)| (SERIES[*i].written(), (*name).into())).collect(),
        data: table(recorded, &all),
        ..Chart::default()
    };
    let drawn_chart = chart.drawn(
        |_| Rows::height(drawn.len(), ROW),
        |area, width| {
            let rows = Rows { area, n: drawn.len(), px: ROW, until_s: recorded.len_s() };
            for (nth, known) in drawn.iter().enumerate() {
                let metrics = &known.task.metrics;
                let name = format!("{}/{}, CPU {}", metrics.comm, metrics.pid, metrics.cpu);
                let place = rows.row(nth, &name, scale, (5, &|v| us(*v)))?;
                let points = |of: fn(&Times) -> Option<f64>| -> Vec<(f64, Option<f64>)> {
                    let middle = |span: &Span| (span.begin_s + span.end_s) / 2.0;
                    let value = |span: &Span| of_task(known, span).and_then(|times| of(&times));
                    recorded.spans.iter().map(|span| (middle(span), value(span))).collect()
                };
                line(area, &place, &points(|t| t.quantile_us(0.5)), SERIES[0])?;
                line(area, &place, &points(|t| t.quantile_us(0.99)), SERIES[4])?;
                line(area, &place, &points(|t| Some(t.max_us)), SERIES[1])?;
                let worst_s = metrics.wait_max_at_s - recorded.from_s;
                if worst_s >= 0.0 {
                    let worst = place.at(worst_s, metrics.wait_max_us);
                    area.draw(&Circle::new(worst, 6, INK.drawn().stroke_width(2)))
                        .map_err(failed)?;
                    let (x, side) = if worst.0 * 2 > width as i32 {
                        (worst.0 - 10, HPos::Right)
                    } else {
                        (worst.0 + 10, HPos::Left)
                    };
                    label(area, &us(metrics.wait_max_us), (x, worst.1 - 12), side)?;
                }
            }
            Ok(())
        },
    );
    drawn_chart.map(Some)
}

fn table(recorded: &Recorded, all: &[&Known]) -> Grid {
    let row = |known: &&Known| {
        let metrics = &known.task.metrics;
        let waits = &known.task.waits;
        let quantile = |share| us((waits.quantile_ns(share) / 1e3).min(metrics.wait_max_us));
        vec![
            format!("{}/{}", metrics.comm, metrics.pid),
            policy(metrics),
            number(metrics.waits),
            quantile(0.5),
            quantile(0.99),
            us(metrics.wait_max_us),
            match metrics.wait_max_at_s - recorded.from_s {
                before if before < 0.0 => "before the recording".into(),
                at_s => format!("{at_s:.3} s"),
            },
            metrics.wait_max_after.clone(),
        ]
    };
    let head = [
        "task",
        "policy",
        "wake-ups",
        "median",
        "99 %",
        "longest",
        "that was at",
        "who ran before",
    ];
    Grid::new(&head, all.iter().map(row).collect())
}
