// SPDX-License-Identifier: GPL-2.0-only
//! The table of all tasks.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use super::super::columns::{self, Column};
use super::super::store::Store;
use super::super::{Areas, text};
use crate::model::{Described, Task};

/// The rows around the selected one.
pub fn table(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let columns = columns::fitting(store.skipped, area.width);
    let room = usize::from(area.height.saturating_sub(1));
    let from = first_row(store, room);
    let shown = store.rows().iter().skip(from).take(room);
    let rows = shown.clone().map(|task| row(task, &columns, store));
    let widths = columns.iter().map(|column| Constraint::Length(column.width));
    let head = Row::new(columns.iter().map(|column| title(column, store)));
    let table = Table::new(rows, widths).header(head.style(store.theme.head())).column_spacing(1);
    frame.render_widget(table, area);

    let mut x = area.x;
    for column in &columns {
        areas.titles.push((Rect { x, width: column.width, height: 1, ..area }, column.field));
        x += column.width + 1;
    }
    for (at, task) in shown.enumerate() {
        let row = Rect { y: area.y + 1 + at as u16, height: 1, ..area };
        areas.tasks.push((row, task.metrics.pid));
    }
    (areas.page_rows, areas.tasks_from) = (room, from);
    if store.rows().is_empty() && room > 0 {
        let why = match store.filter.trim() {
            "" => "no task has run yet".to_owned(),
            filter => format!("no task has the name, id or class \"{filter}\"; Esc shows all"),
        };
        let line = Rect { y: area.y + 1, height: 1, ..area };
        frame.render_widget(Line::styled(why, store.theme.dim()), line);
    }
}

/// The first row in sight: as before, unless the selected one would be out of sight.
fn first_row(store: &Store, room: usize) -> usize {
    let before = store.areas.tasks_from.min(store.rows().len().saturating_sub(room));
    match store.selected_row() {
        Some(selected) if selected < before => selected,
        Some(selected) if room > 0 && selected >= before + room => selected + 1 - room,
        _ => before,
    }
}

/// The column's title; that of the names has the filter, and how many there are.
fn title<'a>(column: &Column, store: &Store) -> Line<'a> {
    let mut title = column.described().title.to_owned();
    if column.described().name == "comm" {
        title += &match store.filter.trim() {
            "" => format!(" ({})", store.rows().len()),
            filter => format!(" /{filter} ({})", store.rows().len()),
        };
    }
    let line = Line::from(title);
    let line =
        if store.order.field == column.field { line.style(store.theme.sorted()) } else { line };
    if column.text { line } else { line.right_aligned() }
}

fn row<'a>(task: &Task, columns: &[Column], store: &Store) -> Row<'a> {
    let selected = store.selected == Some(task.metrics.pid);
    let class = match selected {
        true => Style::new(), // the row's own is enough
        false => store.theme.class(&task.metrics.class),
    };
    let values = task.metrics.values();
    let cells = columns.iter().map(|column| {
        let field = column.described();
        let line = Line::from(text::figure(field, values[column.field]));
        let line = if matches!(field.name, "class" | "comm") { line.style(class) } else { line };
        if column.text { line } else { line.right_aligned() }
    });
    let row = Row::new(cells);
    if selected { row.style(store.theme.selected()) } else { row }
}
