// SPDX-License-Identifier: GPL-2.0-only
//! The charts of the page: rows over one axis of time.

pub mod evictions;
pub mod latency;
pub mod residence;
pub mod shares;

use std::ops::Range;

use anyhow::Result;
use page::chart::{Area, failed, fitting, font, label};
use page::palette::{Colour, GRID, INK};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// Of a row's label, px.
const LABEL: u32 = 34;
/// For the words at the axis of values, px.
const LEFT: u32 = 74;
const RIGHT: u32 = 24;
/// For the axis of time below the last row, px.
const BOTTOM: u32 = 48;

/// Rows one below the other; the last one has the axis of time.
struct Rows<'a, 'b> {
    area: &'a Area<'b>,
    /// How many.
    n: usize,
    /// Height of each without its label, px.
    px: u32,
    /// Where time ends, seconds.
    until_s: f64,
}

impl Rows<'_, '_> {
    /// Height of so many rows, px.
    fn height(n: usize, px: u32) -> u32 {
        (LABEL + px) * n as u32 + BOTTOM
    }

    /// Draws the frame of a row: its label, and values of `scale` with about `ticks` of them
    /// written at the axis.
    fn row(
        &self,
        nth: usize,
        name: &str,
        scale: Scale,
        values: (usize, &dyn Fn(&f64) -> String),
    ) -> Result<Place> {
        let (x, y) = match scale {
            Scale::Linear(most) => self.frame(nth, name, 0.0..most, values)?,
            Scale::Log(least, most) => self.frame(nth, name, (least..most).log_scale(), values)?,
        };
        Ok(Place { x, y, scale, until_s: self.until_s() })
    }

    /// See [`Rows::row`]. Returns the pixels of its values.
    fn frame<Y>(
        &self,
        nth: usize,
        name: &str,
        range: Y,
        (ticks, text): (usize, &dyn Fn(&f64) -> String),
    ) -> Result<(Range<i32>, Range<i32>)>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let (width, _) = self.area.dim_in_pixel();
        let top = (LABEL + self.px) * nth as u32;
        let is_last = nth + 1 == self.n;
        let below = if is_last { BOTTOM } else { 0 };
        let height = LABEL + self.px + below;
        let at = (4, (top + LABEL / 3) as i32);
        label(self.area, &fitting(name, width - 2 * RIGHT), at, HPos::Left)?;
        let part = self.area.clone().shrink((0, top), (width, height));
        let mut chart = ChartBuilder::on(&part)
            .margin_top(LABEL)
            .margin_right(RIGHT)
            .set_label_area_size(LabelAreaPosition::Left, LEFT)
            .set_label_area_size(LabelAreaPosition::Bottom, below)
            .build_cartesian_2d(0.0..self.until_s(), range)
            .map_err(failed)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(if width < 500 { 4 } else { 9 })
            .y_labels(ticks)
            .x_label_formatter(&|s| format!("{}", (s * 1e3).round() / 1e3))
            .y_label_formatter(text)
            .label_style(font())
            .axis_style(INK.drawn())
            .bold_line_style(GRID.drawn())
            .light_line_style(TRANSPARENT)
            .axis_desc_style(font());
        if is_last {
            mesh.x_desc("seconds since the recording began");
        }
        mesh.draw().map_err(failed)?;
        Ok(chart.plotting_area().get_pixel_range())
    }

    /// Not 0, which would be no axis.
    fn until_s(&self) -> f64 {
        self.until_s.max(1e-3)
    }
}

/// Values of a row.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// From 0 to this.
    Linear(f64),
    /// From one to the other, both above 0.
    Log(f64, f64),
}

impl Scale {
    /// The whole decades that hold both values.
    fn decades(least: f64, most: f64) -> Self {
        let decade = |value: f64| value.max(1e-3).log10().floor();
        Self::Log(10f64.powf(decade(least)), 10f64.powf(decade(most.max(least)) + 1.0))
    }

    /// Where a value is, 0 to 1.
    fn share(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear(most) => value / most,
            Self::Log(least, most) => (value.max(least) / least).ln() / (most / least).ln(),
        };
        share.clamp(0.0, 1.0)
    }
}

/// The place of a row: where moments and values are.
struct Place {
    x: Range<i32>,
    y: Range<i32>,
    scale: Scale,
    until_s: f64,
}

impl Place {
    /// px
    fn at(&self, at_s: f64, value: f64) -> (i32, i32) {
        let share = (at_s / self.until_s).clamp(0.0, 1.0);
        let of = |range: &Range<i32>, share: f64| {
            (share * f64::from(range.end - range.start)).round() as i32
        };
        (self.x.start + of(&self.x, share), self.y.end - of(&self.y, self.scale.share(value)))
    }
}

/// A value for a span of time.
#[derive(Clone, Copy, Debug)]
struct Step {
    begin_s: f64,
    end_s: f64,
    low: f64,
    high: f64,
}

/// Fills between the low and the high values.
fn band(area: &Area, place: &Place, steps: &[Step], colour: Colour) -> Result<()> {
    if steps.iter().all(|step| step.high <= step.low) {
        return Ok(());
    }
    let corners =
        |step: &Step, value: f64| [place.at(step.begin_s, value), place.at(step.end_s, value)];
    let upper = steps.iter().flat_map(|step| corners(step, step.high));
    let lower = steps.iter().rev().flat_map(|step| {
        let [begin, end] = corners(step, step.low);
        [end, begin]
    });
    let outline: Vec<(i32, i32)> = upper.chain(lower).collect();
    area.draw(&Polygon::new(outline, colour.drawn().filled())).map_err(failed)
}

/// A line through the values; a gap where there is none.
fn line(area: &Area, place: &Place, points: &[(f64, Option<f64>)], colour: Colour) -> Result<()> {
    let style = colour.drawn().stroke_width(2);
    for piece in points.split(|(_, value)| value.is_none()) {
        let piece: Vec<(i32, i32)> =
            piece.iter().filter_map(|(at_s, value)| Some(place.at(*at_s, (*value)?))).collect();
        match piece[..] {
            [] => {}
            // a line of one point would not be seen
            [only] => area.draw(&Circle::new(only, 2, style.filled())).map_err(failed)?,
            _ => area.draw(&PathElement::new(piece, style)).map_err(failed)?,
        }
    }
    Ok(())
}
