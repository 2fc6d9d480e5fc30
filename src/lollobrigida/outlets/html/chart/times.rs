// SPDX-License-Identifier: GPL-2.0-only
//! Distribution of the execution times of each group: a point for each task, a box from the
//! first to the third quarter, a line at the median.

use anyhow::Result;
use plotters::prelude::*;

use super::rows::{Axis, Frame, height};
use super::{Chart, Grid, failed};
use crate::outlets::html::side::{Row, Side, rows};
use crate::outlets::units::text;
use crate::result::figures::Unit;
use page::palette::{INK, series};

/// Points of a row beyond which they are not drawn: they would be a bar.
const MOST_POINTS: usize = 300;

/// `None`: no task finished.
pub fn chart(sides: &[Side]) -> Result<Option<Chart>> {
    let all: Vec<(Row, Vec<f64>)> = rows(sides)
        .into_iter()
        .map(|row| (times(&row), row))
        .filter(|(times, _)| !times.is_empty())
        .map(|(times, row)| (row, times))
        .collect();
    let least = all.iter().flat_map(|(_, t)| t).copied().reduce(f64::min);
    let most = all.iter().flat_map(|(_, t)| t).copied().reduce(f64::max);
    let Some((least, most)) = least.zip(most) else { return Ok(None) };
    // Some air, so that points do not lie on the border; not from 0: the spread is the point.
    let air = (0.06 * (most - least)).max(0.01 * most).max(1.0);
    let labels: Vec<String> = all.iter().map(|(row, _)| row.label.clone()).collect();
    let chart = Chart {
        id: "times".into(),
        class: "times",
        title: "Execution times by group".into(),
        desc: "Every task's execution time, all runs together: a point for each, a box around the \
               middle half, a line at the median, whiskers to the least and the greatest."
            .into(),
        data: data(&all),
        ..Chart::default()
    };
    let drawn = chart.drawn(
        |_| height(all.len()),
        |area, _| {
            let axis = Axis {
                title: "execution time (the axis does not begin at 0)",
                text: &|v| text(*v, Unit::Ns),
            };
            Frame::draw(area, (least - air).max(0.0)..most + air, &axis, &labels, |frame| {
                for (i, (row, times)) in all.iter().enumerate() {
                    row_of(frame, i, row.side, times)?;
                }
                Ok(())
            })
        },
    );
    drawn.map(Some)
}

fn row_of(frame: &Frame, row: usize, side: usize, times: &[f64]) -> Result<()> {
    let ((upper, lower), middle) = (Frame::edges(row), Frame::middle(row));
    let ink = INK.drawn().stroke_width(1);
    let line = |a: (i32, i32), b: (i32, i32)| {
        frame.area.draw(&PathElement::new(vec![a, b], ink)).map_err(failed)
    };
    let [least, first, median, third, most] =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|q| frame.x(quantile(times, q)));
    line((least, middle), (first, middle))?;
    line((third, middle), (most, middle))?;
    if times.len() <= MOST_POINTS {
        for (i, time) in times.iter().enumerate() {
            // Up and down in turn, so that equal ones are seen beside each other.
            let y = middle + [0, -6, 6, -3, 3][i % 5];
            let point = Circle::new((frame.x(*time), y), 3, series(side).drawn().filled());
            frame.area.draw(&point).map_err(failed)?;
        }
    }
    frame.area.draw(&Rectangle::new([(first, upper), (third, lower)], ink)).map_err(failed)?;
    let bold = INK.drawn().stroke_width(3);
    let median = PathElement::new(vec![(median, upper), (median, lower)], bold);
    frame.area.draw(&median).map_err(failed)
}

/// Of the tasks that finished in all runs, ascending.
fn times(row: &Row) -> Vec<f64> {
    let of_group = |run: &crate::result::Run| {
        let index = run.groups.iter().position(|g| g.name == row.group.name);
        let mine = run.tasks.iter().filter(|t| Some(t.group) == index && t.cut.is_none());
        mine.map(|t| t.wall_ns as f64).collect::<Vec<_>>()
    };
    let mut times: Vec<f64> = row.of.runs.iter().flat_map(of_group).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Of ascending values, between the two nearest in proportion.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

fn data(all: &[(Row, Vec<f64>)]) -> Grid {
    let row = |(row, times): &(Row, Vec<f64>)| {
        let of = |q| text(quantile(times, q), Unit::Ns);
        let mut cells = vec![row.label.clone(), times.len().to_string()];
        cells.extend([0.0, 0.25, 0.5, 0.75, 1.0].map(of));
        cells
    };
    let head = ["group", "tasks", "least", "first quarter", "median", "third quarter", "greatest"];
    Grid::new(&head, all.iter().map(row).collect())
}
