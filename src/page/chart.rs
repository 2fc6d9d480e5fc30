// SPDX-License-Identifier: GPL-2.0-only
//! Charts as SVG inside the page. Each is drawn twice, for a wide and for a narrow page:
//! shrunk to a telephone the wide form could not be read. What a chart shows is also in its
//! title, its description and a table.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::palette::{Colour, INK};

/// Of the wide and of the narrow form, px.
pub const WIDTHS: [(&str, u32); 2] = [("wide", 960), ("narrow", 330)];

/// Height of text, px; plotters writes it divided by 1.24.
const FONT: f64 = 16.0;

/// What plotters draws on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A chart with its words.
#[derive(Default)]
pub struct Chart {
    /// Unique in the page, a word.
    pub id: String,
    /// What kind of chart: its class in the page.
    pub class: &'static str,
    /// What it is.
    pub title: String,
    /// What it shows, for those who do not see it.
    pub desc: String,
    /// What must be known to read it; may be empty.
    pub note: String,
    /// Two SVG elements.
    pub svg: String,
    /// Colour as written and what it stands for.
    pub legend: Vec<(String, String)>,
    /// The figures drawn.
    pub data: Grid,
}

/// Charts under one heading: `charts.html` shows a list of them, which it finds as `sections`,
/// with their tables unfolded if `open` is " open" and not "".
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// What to look for.
    pub text: &'static str,
    /// In the order of the page.
    pub charts: Vec<Chart>,
}

/// A table. The first column is the rows' heading.
#[derive(Default)]
pub struct Grid {
    /// Of the columns.
    pub head: Vec<String>,
    /// As many cells in each as columns.
    pub rows: Vec<Vec<String>>,
    /// Rows that there was no place for.
    pub left_out: usize,
}

/// More rows of a table than anybody reads in a page; the JSON and CSV have them.
const MOST_ROWS: usize = 400;

/// In a cell to which the column does not apply.
pub const NOTHING: &str = "–";

impl Grid {
    /// Columns in which every row has nothing ([`NOTHING`] or no text) are left out.
    pub fn new(head: &[&str], mut rows: Vec<Vec<String>>) -> Self {
        let nothing = |cell: &String| cell.is_empty() || cell == NOTHING;
        let told: Vec<bool> =
            (0..head.len()).map(|i| !rows.iter().all(|row| nothing(&row[i]))).collect();
        let mut kept = told.iter();
        let head: Vec<&str> = head.iter().copied().filter(|_| kept.next() == Some(&true)).collect();
        for row in &mut rows {
            let mut kept = told.iter();
            row.retain(|_| kept.next() == Some(&true));
        }
        let left_out = rows.len().saturating_sub(MOST_ROWS);
        rows.truncate(MOST_ROWS);
        Self { head: head.iter().map(|h| (*h).into()).collect(), rows, left_out }
    }
}

impl Chart {
    /// Draws both forms: `height` and `draw` are told the width.
    ///
    /// # Errors
    /// When the drawing library fails.
    pub fn drawn(
        mut self,
        height: impl Fn(u32) -> u32,
        draw: impl Fn(&Area, u32) -> Result<()>,
    ) -> Result<Self> {
        for (form, width) in WIDTHS {
            let size = (width, height(width));
            let mut svg = String::new();
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            draw(&area, width)?;
            area.present().map_err(failed)?;
            drop(area);
            self.svg += &self.titled(&svg, form, size)?;
        }
        Ok(self)
    }

    /// With title and description, and of the page's width instead of a fixed one.
    fn titled(&self, svg: &str, form: &str, (width, height): (u32, u32)) -> Result<String> {
        let (_, marks) = svg
            .split_once("<svg ")
            .and_then(|(_, rest)| rest.split_once('>'))
            .ok_or_else(|| anyhow!("plotters wrote no svg element for {}", self.id))?;
        let id = format!("{}-{form}", self.id);
        let [title, desc] = [&self.title, &self.desc].map(|text| escape(text));
        Ok(format!(
            "<svg class=\"{form}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" xmlns=\"http://www.w3.org/2000/svg\">\
             <title id=\"{id}-title\">{title}</title><desc id=\"{id}-desc\">{desc}</desc>{marks}\n"
        ))
    }
}

fn escape(text: &str) -> String {
    askama::filters::escape(text, askama::filters::Html)
        .map_or_else(|_| String::new(), |t| t.to_string())
}

/// Text at a place, px; `h` says which of its sides is there.
pub fn label(area: &Area, text: &str, at: (i32, i32), h: HPos) -> Result<()> {
    let style = font().pos(Pos::new(h, VPos::Center));
    area.draw(&Text::new(text.to_owned(), at, style)).map_err(failed)
}

/// Of all text.
pub fn font() -> TextStyle<'static> {
    ("sans-serif", FONT).into_font().color(&INK.drawn())
}

/// Mean width of a letter in ems of [`FONT`].
const LETTER: f64 = 0.47;

/// Width of a text, px, about.
pub fn letters(text: &str) -> u32 {
    (text.chars().count() as f64 * FONT * LETTER) as u32
}

/// As much of a text as fits.
pub fn fitting(text: &str, px: u32) -> String {
    let most = (f64::from(px) / (FONT * LETTER)) as usize;
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// A filled rectangle, px.
pub fn block(area: &Area, from: (i32, i32), to: (i32, i32), colour: Colour) -> Result<()> {
    area.draw(&Rectangle::new([from, to], colour.drawn().filled())).map_err(failed)
}

/// The drawing library's errors hold borrows.
pub fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("a chart could not be drawn: {error}")
}
