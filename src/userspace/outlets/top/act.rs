// SPDX-License-Identifier: GPL-2.0-only
//! What the user asks for, by a key or the mouse, done to the store.

use ratatui::crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::keys::Action;
use super::rows::Order;
use super::store::{Flow, Page, SPEEDS, Store};

/// Rows that the wheel moves by.
const WHEEL: isize = 3;

impl Store {
    /// Does what is asked for.
    pub(super) fn act(&mut self, action: Action) -> Flow {
        match action {
            Action::Leave => return Flow::Leave,
            Action::Stop => return Flow::StopJob,
            Action::Redraw => return Flow::Redraw,
            Action::Help => (self.help, self.help_from) = (!self.help, 0),
            Action::Back => self.back(),
            Action::Open => self.enter(),
            Action::Log => self.turn_to(Page::Log),
            Action::Cpus => self.turn_to(Page::Cpus),
            Action::Totals => self.turn_to(Page::Totals),
            Action::Pause => self.pause(),
            Action::Up => self.scroll(-1),
            Action::Down => self.scroll(1),
            Action::PageUp => self.scroll(-self.page_rows()),
            Action::PageDown => self.scroll(self.page_rows()),
            Action::First => self.scroll(isize::MIN),
            Action::Last => self.scroll(isize::MAX),
            Action::SortNext => self.sort_beside(1),
            Action::SortPrevious => self.sort_beside(-1),
            Action::Reverse => {
                self.order.descending = !self.order.descending;
                self.sort();
            }
            Action::Right => self.sideways(1),
            Action::Left => self.sideways(-1),
            Action::Filter => self.typing = true,
            Action::Faster => self.play(2.0),
            Action::Slower => self.play(0.5),
            Action::Keep => self.typing = false,
            Action::Drop => {
                self.typing = false;
                self.set_filter(String::new());
            }
            Action::Erase => {
                let mut filter = std::mem::take(&mut self.filter);
                filter.pop();
                self.set_filter(filter);
            }
            Action::Clear => self.set_filter(String::new()),
        }
        Flow::Go
    }

    /// Does what the mouse asks for.
    pub(super) fn mouse(&mut self, event: MouseEvent) {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::ScrollUp => self.scroll(-WHEEL),
            MouseEventKind::ScrollDown => self.scroll(WHEEL),
            MouseEventKind::Down(MouseButton::Left) if self.help => self.help = false,
            MouseEventKind::Down(MouseButton::Left) => self.click(at),
            _ => {}
        }
    }

    fn click(&mut self, at: Position) {
        let title = self.areas.titles.iter().find(|(area, _)| area.contains(at));
        if let Some((_, field)) = title {
            return self.sort_by(*field);
        }
        let row = self.areas.tasks.iter().find(|(area, _)| area.contains(at));
        if let Some((_, pid)) = row {
            if self.selected == Some(*pid) {
                return self.open();
            }
            self.selected = Some(*pid);
        }
    }

    fn back(&mut self) {
        match self.page {
            _ if self.help => self.help = false,
            Page::Tasks => self.set_filter(String::new()),
            _ => self.page = Page::Tasks,
        }
    }

    fn enter(&mut self) {
        match self.page {
            _ if self.help => self.help = false,
            Page::Tasks => self.open(),
            _ => {}
        }
    }

    fn turn_to(&mut self, page: Page) {
        self.help = false;
        self.page = if self.page == page { Page::Tasks } else { page };
        (self.log_back, self.cpus_from, self.totals_from) = (0, 0, 0);
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.sort();
    }

    fn play(&mut self, times: f64) {
        self.replay = self.replay.map(|speed| (speed * times).clamp(SPEEDS.0, SPEEDS.1));
    }

    /// Rows of a page, less one that stays in sight.
    fn page_rows(&self) -> isize {
        isize::try_from(self.areas.page_rows).unwrap_or(isize::MAX).saturating_sub(1).max(1)
    }

    /// Moves down by so many rows, or up.
    fn scroll(&mut self, rows: isize) {
        let moved = |from: usize, last: usize| from.saturating_add_signed(rows).min(last);
        match self.page {
            _ if self.help => self.help_from = moved(self.help_from, self.areas.last_from),
            Page::Tasks => {
                let last = self.rows().len().saturating_sub(1);
                let row = moved(self.selected_row().unwrap_or(0), last);
                self.selected = self.rows().get(row).map(|task| task.metrics.pid);
            }
            Page::Log => {
                let back = self.log_back.min(self.areas.last_from);
                let up = rows.checked_neg().unwrap_or(isize::MAX);
                self.log_back = back.saturating_add_signed(up).min(self.areas.last_from);
            }
            Page::Cpus => self.cpus_from = moved(self.cpus_from, self.areas.last_from),
            Page::Totals => self.totals_from = moved(self.totals_from, self.areas.last_from),
            Page::Detail => {}
        }
    }

    /// Sorts by the shown column so many to the right of the present one.
    fn sort_beside(&mut self, by: isize) {
        let fields: Vec<_> = self.areas.titles.iter().map(|(_, field)| *field).collect();
        let now = fields.iter().position(|field| *field == self.order.field);
        let next = match (now, isize::try_from(fields.len())) {
            (Some(now), Ok(len @ 1..)) => (now as isize + by).rem_euclid(len) as usize,
            _ => 0, // sorted by a column out of sight: begin with the first in sight
        };
        if let Some(field) = fields.get(next) {
            self.order = Order::by(*field);
            self.sort();
        }
    }
}
