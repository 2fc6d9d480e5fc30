// SPDX-License-Identifier: GPL-2.0-only
//! Jain's index of each group of more than one task.

use anyhow::Result;
use plotters::style::text_anchor::HPos;

use super::rows::{Axis, Frame, height};
use super::{Chart, Grid, block, label};
use crate::outlets::html::side::{Row, Side, rows};
use crate::outlets::units::text;
use crate::result::figures::{self, Unit};
use page::palette::series;

/// `None`: no group has two tasks that finished.
pub fn chart(sides: &[Side]) -> Result<Option<Chart>> {
    let all: Vec<(Row, f64)> =
        rows(sides).into_iter().filter_map(|row| mean(&row).map(|jain| (row, jain))).collect();
    if all.is_empty() {
        return Ok(None);
    }
    let labels: Vec<String> = all.iter().map(|(row, _)| row.label.clone()).collect();
    let cells = |(row, jain): &(Row, f64)| {
        let least = 1.0 / f64::from(row.group.finished);
        vec![row.label.clone(), text(*jain, Unit::Index), text(least, Unit::Index)]
    };
    let chart = Chart {
        id: "fairness".into(),
        class: "fairness",
        title: "Fairness by group".into(),
        desc: "A bar for each group from 0 to Jain's fairness index of its tasks' speeds, mean of \
               the runs: 1 when all tasks are equally fast, 1/n when one of n has everything."
            .into(),
        data: Grid::new(
            &["group", "Jain's index", "least possible"],
            all.iter().map(cells).collect(),
        ),
        ..Chart::default()
    };
    let drawn = chart.drawn(
        |_| height(all.len()),
        |area, _| {
            let axis = Axis { title: "Jain's fairness index", text: &|v| format!("{v:.2}") };
            Frame::draw(area, 0.0..1.0, &axis, &labels, |frame| {
                for (i, (row, jain)) in all.iter().enumerate() {
                    let (upper, lower) = Frame::edges(i);
                    block(area, (frame.x(0.0), upper), (frame.x(*jain), lower), series(row.side))?;
                    // The number at the right end of the label's line: bars are all near 1.
                    let at = (frame.x(1.0), upper - 12);
                    label(area, &text(*jain, Unit::Index), at, HPos::Right)?;
                }
                Ok(())
            })
        },
    );
    drawn.map(Some)
}

fn mean(row: &Row) -> Option<f64> {
    let groups = row.of.runs.iter().flat_map(|run| &run.groups);
    let mine = groups.filter(|g| g.name == row.group.name && g.finished > 1);
    figures::mean(mine.map(|g| g.jain))
}
