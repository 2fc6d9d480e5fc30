// SPDX-License-Identifier: GPL-2.0-only
//! Percentiles of the wake-up latency of each group, on a logarithmic axis. The marks differ
//! in shape.

use anyhow::Result;
use plotters::prelude::*;

use super::rows::{Axis, Frame, height};
use super::{Chart, Grid, failed};
use crate::outlets::html::side::{Row, Side, rows};
use crate::outlets::units::{ns, text};
use crate::result::Latency;
use crate::result::figures::Unit;
use page::palette::series;

/// `None`: nobody slept, or it is not known.
pub fn chart(sides: &[Side]) -> Result<Option<Chart>> {
    let all: Vec<(Row, Latency)> = rows(sides)
        .into_iter()
        .filter_map(|row| row.group.wakeup.filter(|l| l.count > 0).map(|l| (row, l)))
        .collect();
    let least = all.iter().map(|(_, l)| l.p50_ns).min();
    let most = all.iter().map(|(_, l)| l.max_ns).max();
    let Some((least, most)) = least.zip(most) else { return Ok(None) };
    let labels: Vec<String> = all.iter().map(|(row, _)| row.label.clone()).collect();
    let cells = |(row, l): &(Row, Latency)| {
        let mut cells = vec![row.label.clone(), l.count.to_string()];
        cells.extend([l.p50_ns, l.p90_ns, l.p99_ns, l.p999_ns, l.max_ns].map(ns));
        cells
    };
    let head = ["group", "wake-ups", "p50", "p90", "p99", "p99.9", "greatest"];
    let chart = Chart {
        id: "wakeups".into(),
        class: "wakeups",
        title: "Wake-up latency by group".into(),
        desc:
            "For each group on a logarithmic axis: ● half of the wake-ups are not later, ○ 90 %, \
               ▲ 99 %, × 99.9 %, | the latest."
                .into(),
        data: Grid::new(&head, all.iter().map(cells).collect()),
        ..Chart::default()
    };
    // Whole decades, so that at least two of them are written at the axis.
    let range = (decade(least), decade(most) * 10.0);
    let drawn = chart.drawn(
        |_| height(all.len()),
        |area, _| {
            let axis = Axis { title: "wake-up latency", text: &|v| text(*v, Unit::Ns) };
            Frame::draw(area, (range.0..range.1).log_scale(), &axis, &labels, |frame| {
                for (i, (row, latency)) in all.iter().enumerate() {
                    marks(frame, i, row.side, latency)?;
                }
                Ok(())
            })
        },
    );
    drawn.map(Some)
}

/// The greatest power of ten that is not above.
fn decade(ns: u64) -> f64 {
    10f64.powi(ns.max(1).ilog10() as i32)
}

fn marks(frame: &Frame, row: usize, side: usize, l: &Latency) -> Result<()> {
    let (middle, (upper, lower)) = (Frame::middle(row), Frame::edges(row));
    let at = |ns: u64| (frame.x(ns.max(1) as f64), middle);
    let colour = series(side).drawn();
    let (fill, line) = (colour.filled(), colour.stroke_width(2));
    let max = at(l.max_ns).0;
    frame
        .area
        .draw(&PathElement::new(vec![at(l.p50_ns), at(l.max_ns)], colour.stroke_width(1)))
        .map_err(failed)?;
    frame.area.draw(&Circle::new(at(l.p50_ns), 5, fill)).map_err(failed)?;
    frame.area.draw(&Circle::new(at(l.p90_ns), 5, line)).map_err(failed)?;
    frame.area.draw(&TriangleMarker::new(at(l.p99_ns), 7, fill)).map_err(failed)?;
    frame.area.draw(&Cross::new(at(l.p999_ns), 5, line)).map_err(failed)?;
    frame
        .area
        .draw(&PathElement::new(vec![(max, upper + 4), (max, lower - 4)], line))
        .map_err(failed)
}
