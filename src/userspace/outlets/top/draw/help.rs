// SPDX-License-Identifier: GPL-2.0-only
//! The help, laid over what is shown.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::super::Areas;
use super::super::keys::{KEYS, MOUSE, When};
use super::super::store::Store;

/// All keys in the middle of `area`; it is scrolled where they do not fit.
pub fn draw(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let text = text(store);
    let wanted = text.height() as u16 + 2;
    let area = area.centered(
        Constraint::Length((text.width() as u16 + 4).min(area.width)),
        Constraint::Length(wanted.min(area.height)),
    );
    areas.page_rows = usize::from(area.height - 2);
    areas.last_from = text.height().saturating_sub(areas.page_rows);
    let from = store.help_from.min(areas.last_from);
    let title = if areas.last_from > 0 { " keys (Down: more) " } else { " keys " };
    let block = Block::bordered().title(title);
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(block).scroll((from as u16, 0)), area);
}

fn text(store: &Store) -> Text<'static> {
    let theme = store.theme;
    let line = |shown: &'static str, what: &'static str| {
        Line::from(vec![Span::styled(format!(" {shown:<19}"), theme.key()), Span::from(what)])
    };
    let mut text = Text::default();
    for when in [When::Looking, When::Replaying, When::Typing] {
        if when == When::Typing {
            text.push_line(Line::styled(" while a filter is typed", theme.strong()));
        }
        for binding in KEYS.iter().filter(|binding| binding.when == when) {
            text.push_line(line(binding.shown, binding.what));
        }
    }
    text.push_line(Line::styled(" with the mouse", theme.strong()));
    for (shown, what) in MOUSE {
        text.push_line(line(shown, what));
    }
    text
}
