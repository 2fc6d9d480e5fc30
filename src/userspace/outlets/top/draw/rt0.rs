// SPDX-License-Identifier: GPL-2.0-only
//! The hard real-time tasks: how promptly they run once they are woken.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;
use ratatui::widgets::{Row, Sparkline, Table};

use super::super::rows;
use super::super::store::Store;
use super::super::text::{count, percent, time};
use super::super::{Areas, Theme};
use crate::model::{Point, Task};

/// Cells of the columns but the last, which is the history.
const WIDTHS: [u16; 9] = [15, 7, 3, 4, 4, 5, 5, 5, 5];

/// As many as fit.
pub fn panel(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let tasks = rows::hard(&store.shown);
    let room = usize::from(area.height.saturating_sub(1));
    let hidden = tasks.len().saturating_sub(room);
    let right = |text: &str| Line::from(text.to_owned()).right_aligned();
    let last =
        if hidden > 0 { format!("p99 history (+{hidden} tasks)") } else { "p99 history".into() };
    let head = Row::new([
        Line::from("RT0 task"),
        right("pid"),
        right("CPU"),
        right("prio"),
        right("cpu%"),
        right("run/s"),
        right("p50"),
        right("p99"),
        right("max"),
        Line::from(last),
    ]);
    let widths = WIDTHS.map(Constraint::Length).into_iter().chain([Constraint::Min(0)]);
    let rows = tasks.iter().take(room).map(|task| row(task, store));
    let table = Table::new(rows, widths).header(head.style(store.theme.head())).column_spacing(1);
    frame.render_widget(table, area);
    if tasks.is_empty() {
        let note = Line::styled(
            "none seen: no rt or dl task that is bound to RT CPUs has run",
            store.theme.dim(),
        );
        frame.render_widget(note, Rect { y: area.y + 1, height: room.min(1) as u16, ..area });
    }
    let used = WIDTHS.iter().map(|width| width + 1).sum::<u16>().min(area.width);
    for (at, task) in tasks.iter().take(room).enumerate() {
        let row = Rect { y: area.y + 1 + at as u16, height: 1, ..area };
        areas.tasks.push((row, task.metrics.pid));
        let cell = Rect { x: row.x + used, width: row.width - used, ..row };
        history(frame, cell, task, store.theme, |point| point.wait_p99_us);
    }
}

fn row(task: &Task, store: &Store) -> Row<'static> {
    let metrics = &task.metrics;
    let right = |text: String| Line::from(text).right_aligned();
    let row = Row::new([
        Line::styled(metrics.comm.clone(), store.theme.class("RT0")),
        right(metrics.pid.to_string()),
        right(metrics.cpu.to_string()),
        // a task of SCHED_DEADLINE has no priority
        right(if metrics.rt_prio > 0 { metrics.rt_prio.to_string() } else { "dl".into() }),
        right(percent(metrics.cpu_pct)),
        right(count(metrics.runs_per_s.round())),
        right(time(metrics.wait_p50_us)),
        right(time(metrics.wait_p99_us)),
        right(time(metrics.wait_max_us)),
    ]);
    if store.selected == Some(metrics.pid) { row.style(store.theme.strong()) } else { row }
}

/// One figure over the last intervals as a row of little bars, the newest on the right.
pub fn history(
    frame: &mut Frame<'_>,
    area: Rect,
    task: &Task,
    theme: Theme,
    figure: impl Fn(&Point) -> f64,
) {
    let room = usize::from(area.width);
    let skipped = task.points.len().saturating_sub(room);
    // a sparkline takes whole numbers: a thousandth of the unit is fine enough
    let data: Vec<_> =
        task.points.iter().skip(skipped).map(|point| (figure(point) * 1e3) as u64).collect();
    let empty = Constraint::Length((room - data.len().min(room)) as u16);
    let [_, bars] = Layout::horizontal([empty, Constraint::Min(0)]).areas(area);
    frame.render_widget(Sparkline::default().data(data).style(theme.key()), bars);
}
