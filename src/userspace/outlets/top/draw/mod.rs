// SPDX-License-Identifier: GPL-2.0-only
//! Draws what the store knows. Nothing here remembers anything.

mod cpus;
mod detail;
mod header;
mod help;
mod log;
mod rt0;
mod tasks;
mod totals;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::keys::{KEYS, When};
use super::store::{Page, Store};
use super::{Areas, rows};

/// Cells without which the view makes no sense: columns, rows.
const LEAST: (u16, u16) = (60, 16);
/// From this many rows on, the last events are shown beneath the tasks.
const WITH_LOG: u16 = 40;
/// From this many columns on, CPUs and hard real-time tasks are side by side.
const SIDE_BY_SIDE: u16 = 150;

/// Draws everything, and says where it put what can be clicked.
pub fn draw(frame: &mut Frame<'_>, store: &Store) -> Areas {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        too_small(frame, area);
        return Areas::default();
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)])
            .areas(area);
    let mut areas = Areas { tasks_from: store.areas.tasks_from, ..Areas::default() };
    header::draw(frame, head, store);
    match store.page {
        Page::Tasks => overview(frame, body, store, &mut areas),
        Page::Detail => detail::draw(frame, body, store),
        Page::Log => log::page(frame, body, store, &mut areas),
        Page::Cpus => cpus::page(frame, body, store, &mut areas),
        Page::Totals => totals::page(frame, body, store, &mut areas),
    }
    footer(frame, foot, store);
    if store.help {
        help::draw(frame, body, store, &mut areas);
    }
    areas
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let lines = [
        Line::from("screen too small"),
        Line::from(format!("{}x{} at least", LEAST.0, LEAST.1)),
        Line::from(format!("here {}x{}", area.width, area.height)),
        Line::from("q: leave"),
    ];
    frame.render_widget(Paragraph::new(lines.to_vec()), area);
}

fn overview(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let cpus = store.shown.machine.cpus.len() as u16;
    let hard = rows::hard(&store.shown).len().max(1) as u16;
    let log = if frame.area().height >= WITH_LOG { area.height / 5 } else { 0 };
    let most = (area.height - log) / 2; // the tasks keep half of it
    let (panels, left) = if area.width >= SIDE_BY_SIDE {
        let rows = (cpus.max(hard) + 2).min(most);
        let [panels, left] =
            Layout::vertical([Constraint::Length(rows), Constraint::Min(0)]).areas(area);
        let halves = [Constraint::Fill(1), Constraint::Length(2), Constraint::Fill(1)];
        let [one, _, other] = Layout::horizontal(halves).areas(panels);
        ([one, other], left)
    } else {
        let hard_rows = (hard + 1).min((most / 3).max(2));
        let cpu_rows = (cpus + 1).min(most - hard_rows);
        let parts =
            [Constraint::Length(cpu_rows), Constraint::Length(hard_rows), Constraint::Min(0)];
        let [one, other, left] = Layout::vertical(parts).areas(area);
        ([one, other], left)
    };
    cpus::panel(frame, panels[0], store);
    rt0::panel(frame, panels[1], store, areas);
    let [tasks, log] = Layout::vertical([Constraint::Min(0), Constraint::Length(log)]).areas(left);
    tasks::table(frame, tasks, store, areas);
    log::panel(frame, log, store);
}

/// The filter while it is typed, else the keys that matter most.
fn footer(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let theme = store.theme;
    let mut line = Line::default();
    if store.typing {
        line.push_span(Span::styled("filter: ", theme.strong()));
        line.push_span(format!("{}_   ", store.filter));
    }
    for binding in KEYS.iter().filter(|binding| !binding.short.is_empty()) {
        let here = match binding.when {
            When::Looking => !store.typing,
            When::Replaying => !store.typing && store.replay.is_some(),
            When::Typing => store.typing,
        };
        let key = binding.shown.split(' ').next().unwrap_or_default();
        let width = key.len() + 1 + binding.short.len() + 2;
        if here && line.width() + width <= usize::from(area.width) + 2 {
            line.push_span(Span::styled(key, theme.key()));
            line.push_span(format!(" {}  ", binding.short));
        }
    }
    frame.render_widget(line, area);
}
