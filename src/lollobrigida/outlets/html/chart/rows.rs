// SPDX-License-Identifier: GPL-2.0-only
//! The frame of charts with labelled rows over one axis. The label is above its row, so that
//! long names fit a narrow page.

use std::ops::Range;

use anyhow::Result;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, failed, fitting, font, label};
use page::palette::{GRID, INK};

/// Of a row, its label included.
const ROW: u32 = 52;
const LABEL: i32 = 20;
const BOTTOM: u32 = 48;
const SIDE: u32 = 32;

/// Height of a chart of so many rows, px.
pub fn height(rows: usize) -> u32 {
    ROW * rows as u32 + BOTTOM
}

/// What is written at the axis.
pub struct Axis<'a> {
    pub title: &'a str,
    pub text: &'a dyn Fn(&f64) -> String,
}

/// Where to draw: x by the axis, y in pixels by row.
pub struct Frame<'a, 'b> {
    pub area: &'a Area<'b>,
    x: Box<dyn Fn(f64) -> i32 + 'a>,
}

impl<'a, 'b> Frame<'a, 'b> {
    /// Draws axis and labels, then lets `marks` draw the rest.
    pub fn draw<X>(
        area: &Area<'b>,
        range: X,
        axis: &Axis,
        labels: &[String],
        marks: impl Fn(&Frame<'_, 'b>) -> Result<()>,
    ) -> Result<()>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let width = area.dim_in_pixel().0;
        let mut chart = ChartBuilder::on(area)
            .margin_left(SIDE)
            .margin_right(SIDE)
            .set_label_area_size(LabelAreaPosition::Bottom, BOTTOM)
            .build_cartesian_2d(range, Range::<f64> { start: 0.0, end: 1.0 })
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(if width < 500 { 4 } else { 9 })
            .x_label_formatter(axis.text)
            .label_style(font())
            .axis_style(INK.drawn())
            .bold_line_style(GRID.drawn())
            .light_line_style(TRANSPARENT)
            .x_desc(axis.title)
            .axis_desc_style(font())
            .draw()
            .map_err(failed)?;
        for (i, text) in labels.iter().enumerate() {
            let at = (SIDE as i32, (ROW * i as u32) as i32 + LABEL / 2 + 2);
            label(area, &fitting(text, width - 2 * SIDE), at, HPos::Left)?;
        }
        let plot = chart.plotting_area();
        marks(&Frame { area, x: Box::new(|v| plot.map_coordinate(&(v, 0.0)).0) })
    }

    /// Of a value, px.
    pub fn x(&self, value: f64) -> i32 {
        (self.x)(value)
    }

    /// Upper and lower edge of a row's marks, px.
    pub fn edges(row: usize) -> (i32, i32) {
        let top = (ROW * row as u32) as i32;
        (top + LABEL + 4, top + ROW as i32 - 6)
    }

    /// Middle of a row's marks, px.
    pub fn middle(row: usize) -> i32 {
        let (upper, lower) = Self::edges(row);
        (upper + lower) / 2
    }
}
