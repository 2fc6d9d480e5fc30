// SPDX-License-Identifier: GPL-2.0-only
//! All event counters: what the scheduler did since it began, and how often.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};

use super::super::Areas;
use super::super::store::Store;
use super::super::text::{count, percent};
use crate::model::{COUNTERS, Group};

/// The groups and what they are about.
const GROUPS: [(Group, &str); 5] = [
    (Group::Attempts, "attempts"),
    (Group::Placed, "placed"),
    (Group::Moved, "moved"),
    (Group::Predicted, "predicted"),
    (Group::Exempt, "exempt"),
];

/// The counters on the whole screen.
pub fn page(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let width = usize::from(area.width);
    let lines = lines(store, width);
    areas.page_rows = usize::from(area.height.saturating_sub(1));
    areas.last_from = lines.len().saturating_sub(areas.page_rows);
    let from = store.totals_from.min(areas.last_from);
    let title = format!("{:<28}  total  since the scheduler began", "counter");
    let mut text = Text::from(Line::styled(format!("{title:<width$}"), store.theme.head()));
    text.extend(lines.into_iter().skip(from));
    frame.render_widget(text, area);
}

/// Cells before the descriptions.
const INDENT: usize = 37;

fn lines(store: &Store, width: usize) -> Vec<Line<'static>> {
    let (theme, machine) = (store.theme, &store.shown.machine);
    let mut lines = Vec::new();
    for (group, title) in GROUPS {
        for (at, counter) in COUNTERS.iter().filter(|c| c.group == group).enumerate() {
            let total = machine.counter(counter);
            let alarm = counter.name == "bodies_on_rt" && total > 0;
            let style = if alarm { theme.alarm() } else { theme.strong() };
            let text = match counter.name {
                "wasted" => format!("{} %: {}", percent(machine.wasted_pct), counter.desc),
                _ => counter.desc.to_owned(),
            };
            let mut text = textwrap::wrap(&text, width.saturating_sub(INDENT)).into_iter();
            let title = if at == 0 { title } else { "" };
            lines.push(Line::from(vec![
                Span::styled(format!("{title:<13}"), theme.dim()),
                Span::from(format!("{:<15}", counter.title)),
                Span::styled(format!("{:>7}", count(total as f64)), style),
                Span::from(format!("  {}", text.next().unwrap_or_default())),
            ]));
            lines.extend(text.map(|rest| Line::from(format!("{:INDENT$}{rest}", ""))));
        }
    }
    lines
}
