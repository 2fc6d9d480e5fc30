// SPDX-License-Identifier: GPL-2.0-only
//! Tables for a terminal.

mod comparison;
mod run;

pub use comparison::render as comparison;
pub use run::render as run;

use std::collections::BTreeMap;
use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, LineStyle, Table};
use comfy_table::{ContentLineStyle, TableStyle};

use crate::result::{Missing, Warning};

/// How it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: u16,
    /// Bold may be used; nothing is told by it alone.
    pub attributes: bool,
    /// A row for every task, however many; otherwise more than [`MANY_TASKS`] are shown by
    /// group only.
    pub every_task: bool,
}

/// Above this the tasks' own rows are left out.
pub const MANY_TASKS: usize = 24;

/// What is neither a terminal nor told its width.
const PLAIN_WIDTH: u16 = 80;

/// A serial line says that it has 0 columns.
const LEAST_WIDTH: u16 = 40;

impl Style {
    /// For standard output as it is: bold on terminals that know it unless `NO_COLOR` is set
    /// and not empty (no-color.org).
    #[must_use]
    pub fn of_stdout(every_task: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
        let able = set("TERM").is_some_and(|t| t != "dumb") && set("NO_COLOR").is_none();
        Self { every_task, ..Self::of(terminal.then(|| Table::new().width()), able) }
    }

    /// `terminal`: that it is one, and its width if known.
    fn of(terminal: Option<Option<u16>>, able: bool) -> Self {
        Self {
            width: terminal.flatten().filter(|w| *w >= LEAST_WIDTH).unwrap_or(PLAIN_WIDTH),
            attributes: terminal.is_some() && able,
            every_task: false,
        }
    }

    /// For files and pipes: 80 columns without attributes.
    #[must_use]
    pub fn plain() -> Self {
        Self { width: PLAIN_WIDTH, attributes: false, every_task: false }
    }

    fn bold(self, text: &str) -> String {
        if self.attributes { format!("\x1b[1m{text}\x1b[0m") } else { text.into() }
    }

    /// First column left, the others right, but for those named in `left`.
    fn table(self, titles: &[&str], left: &[&str]) -> Table {
        let mut table = Table::new();
        // Attributes are decided here, not by what the library finds of the terminal.
        if self.attributes {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
            .load_style(RULED)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.width)
            .set_header(titles.iter().map(|t| Self::cell(t, true)));
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 1));
            if i > 0 && !left.contains(&titles[i]) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }

    fn cell(text: &str, bold: bool) -> Cell {
        let cell = Cell::new(text);
        if bold { cell.add_attribute(Attribute::Bold) } else { cell }
    }
}

/// A rule below the header and nothing else: survives being pasted.
const RULED: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none().junction(' '));

/// A titled table, without blanks at the ends of lines.
fn section(out: &mut String, style: Style, title: &str, table: &Table) {
    *out += &format!("\n{}\n", style.bold(title));
    for line in table.lines() {
        *out += line.trim_end();
        out.push('\n');
    }
}

/// What the reader must know before believing the figures.
fn notes(
    out: &mut String,
    style: Style,
    warnings: &[Warning],
    missing: &[Missing],
    sources: &BTreeMap<String, String>,
) {
    let mut list = |title: &str, items: Vec<(&str, &str)>| {
        if items.is_empty() {
            return;
        }
        *out += &format!("\n{}\n", style.bold(title));
        for (head, text) in items {
            *out += &item(&format!("{head}: {text}"), style.width);
        }
    };
    list("warnings", warnings.iter().map(|w| (&*w.code, &*w.text)).collect());
    list("missing", missing.iter().map(|m| (&*m.what, &*m.why)).collect());
    list("how measured", sources.iter().map(|(what, how)| (&**what, &**how)).collect());
}

/// The first line, or lines.
fn heading(text: &str, style: Style) -> String {
    paragraph(text, style.width).lines().map(|line| style.bold(line) + "\n").collect()
}

/// A list item of lines of at most `width`, indented.
pub fn item(text: &str, width: u16) -> String {
    wrapped(&["-", text], width)
}

/// Lines of at most `width`.
fn paragraph(text: &str, width: u16) -> String {
    wrapped(&[text], width)
}

fn wrapped(columns: &[&str], width: u16) -> String {
    let mut table = Table::new();
    table
        .force_no_tty()
        .load_style(TableStyle::new())
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .add_row(columns);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_for_terminals_that_want_them() {
        assert_eq!(Style::of(None, true), Style::plain());
        assert_eq!(Style::of(Some(None), false), Style::plain());
        let wide = Style { width: 132, ..Style::plain() };
        assert_eq!(Style::of(Some(Some(132)), false), wide);
        assert_eq!(Style::of(Some(Some(132)), true), Style { attributes: true, ..wide });
    }
}
