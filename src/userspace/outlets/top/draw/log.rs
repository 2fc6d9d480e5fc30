// SPDX-License-Identifier: GPL-2.0-only
//! The event log: evictions, moves, exits, notes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};

use super::super::store::Store;
use super::super::text::{clock, time};
use super::super::{Areas, Theme, why};
use crate::model::{Event, What};

/// The log on the whole screen; the newest at the end.
pub fn page(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let log = store.log();
    areas.page_rows = usize::from(area.height.saturating_sub(1));
    areas.last_from = log.len().saturating_sub(areas.page_rows);
    let back = store.log_back.min(areas.last_from);
    let follows = if back == 0 { "following" } else { "End follows it again" };
    let total = store.shown.nr_events;
    let filter = match store.filter.trim() {
        "" => String::new(),
        filter => format!(" with \"{filter}\""),
    };
    let title = format!("events{filter}: {} remembered of {total} so far, {follows}", log.len());
    lines(frame, area, store, &(title + elsewhere(store)), &log[..log.len() - back]);
}

/// The last events, beneath something else.
pub fn panel(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let title = format!("events (e: all of them){}", elsewhere(store));
    lines(frame, area, store, &title, &store.log());
}

/// Where evictions and moves are to be seen, if not here.
fn elsewhere(store: &Store) -> &'static str {
    if store.events { "" } else { "; evictions and moves: scx_artis top" }
}

/// The last events of one task.
pub fn of_task(frame: &mut Frame<'_>, area: Rect, store: &Store, pid: u64) {
    let events = &store.shown.events;
    let log: Vec<_> = events.iter().filter(|event| event.pid == pid).collect();
    lines(frame, area, store, "its last events", &log);
}

fn lines(frame: &mut Frame<'_>, area: Rect, store: &Store, title: &str, log: &[&Event]) {
    if area.is_empty() {
        return;
    }
    let room = usize::from(area.height - 1);
    let width = usize::from(area.width);
    let mut text = Text::from(Line::styled(format!("{title:<width$}"), store.theme.head()));
    if log.is_empty() {
        text.push_line(Line::styled("none yet", store.theme.dim()));
    }
    for event in &log[log.len().saturating_sub(room)..] {
        text.push_line(line(event, store.theme));
    }
    frame.render_widget(text, area);
}

fn line(event: &Event, theme: Theme) -> Line<'static> {
    let at = format!("{}.{:03} ", clock(event.at_s), (event.at_s.fract() * 1e3) as u32);
    let who = format!("{}/{}", event.comm, event.pid);
    let (kind, style, text) = match &event.what {
        What::Eviction { cause, from, to, left_us, arrived_us } => {
            let (arrived, left) = (time(*arrived_us), time(*left_us));
            let text = format!("{who} CPU {from}->{to} in {arrived}, {cause} (left in {left})");
            ("evicted", theme.rt(), text)
        }
        What::Move { why, from, to, wait_us } => {
            let (reason, wait) = (why::short(why), time(*wait_us));
            let text = format!("{who} CPU {from}->{to}, {reason}, waited {wait}");
            ("moved", theme.ext(), text)
        }
        What::Run { cpu, run_us, rt } => {
            let style = if *rt { theme.rt() } else { theme.dim() };
            ("ran", style, format!("{who} for {} on CPU {cpu}", time(*run_us)))
        }
        What::Exit => ("exit", theme.dim(), who),
        What::Note { text } => ("note", theme.warn(), text.clone()),
    };
    Line::from(vec![
        Span::styled(at, theme.dim()),
        Span::styled(format!("{kind:<8}"), style),
        Span::from(text),
    ])
}
