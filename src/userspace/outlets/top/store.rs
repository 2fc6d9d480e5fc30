// SPDX-License-Identifier: GPL-2.0-only
//! What the view knows: the snapshots, and where the user is. Drawing only reads it.

use std::sync::Arc;

use super::columns;
use super::event::{Ended, Event};
use super::keys;
use super::rows::{self, Order};
use super::{Areas, Theme};
use crate::model::{Event as Happened, Snapshot, Task};

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// CPUs, hard real-time tasks, all tasks.
    Tasks,
    /// One task.
    Detail,
    /// The event log.
    Log,
    /// All CPUs.
    Cpus,
    /// All counters.
    Totals,
}

/// What is to be done after an event besides drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing.
    Go,
    /// Forget what the terminal shows.
    Redraw,
    /// Have the whole job stopped.
    StopJob,
    /// Give the terminal back and stop until somebody says go on.
    Stop,
    /// Take the terminal again.
    Continue,
    /// End.
    Leave,
}

/// Least and greatest speed of a replay; each key press doubles or halves it.
pub const SPEEDS: (f64, f64) = (0.125, 1_024.0);

/// What the view begins with.
#[derive(Clone, Debug)]
pub struct Wish {
    /// What the tasks are sorted by.
    pub order: Order,
    /// Which tasks are shown.
    pub filter: String,
    /// How things look.
    pub theme: Theme,
    /// A recording is played, so many times faster than it was made.
    pub replay: Option<f64>,
    /// Evictions and moves come, too.
    pub events: bool,
}

impl Default for Wish {
    /// The busiest first, in colour, of a running scheduler.
    fn default() -> Self {
        let load = columns::named("cpu_pct").unwrap_or_default();
        Self {
            order: Order::by(load),
            filter: String::new(),
            theme: Theme::new(true),
            replay: None,
            events: true,
        }
    }
}

/// What the view knows.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) theme: Theme,
    pub(super) page: Page,
    pub(super) help: bool,
    pub(super) typing: bool,
    pub(super) filter: String,
    pub(super) order: Order,
    pub(super) frozen: bool,
    pub(super) ended: Option<Ended>,
    pub(super) replay: Option<f64>,
    pub(super) events: bool,
    /// Id of the selected task.
    pub(super) selected: Option<u64>,
    /// Columns that are left out on the left.
    pub(super) skipped: usize,
    /// First row of the CPUs' and of the counters' page, lines of the log's page behind its end, first line of the help.
    pub(super) cpus_from: usize,
    pub(super) totals_from: usize,
    pub(super) log_back: usize,
    pub(super) help_from: usize,
    /// The task of the detail page, as it was last seen.
    pub(super) detail: Option<Arc<Task>>,
    /// What is drawn; `live` unless frozen.
    pub(super) shown: Arc<Snapshot>,
    live: Arc<Snapshot>,
    rows: Vec<Arc<Task>>,
    pub(super) areas: Areas,
}

impl Store {
    /// Nothing seen yet.
    pub fn new(wish: Wish) -> Self {
        Self {
            theme: wish.theme,
            page: Page::Tasks,
            help: false,
            typing: false,
            filter: wish.filter,
            order: wish.order,
            frozen: false,
            ended: None,
            replay: wish.replay,
            events: wish.events,
            selected: None,
            skipped: 0,
            cpus_from: 0,
            totals_from: 0,
            log_back: 0,
            help_from: 0,
            detail: None,
            shown: Arc::default(),
            live: Arc::default(),
            rows: Vec::new(),
            areas: Areas::default(),
        }
    }

    /// The tasks that are rows, in order.
    pub fn rows(&self) -> &[Arc<Task>] {
        &self.rows
    }

    /// Row of the selected task.
    pub fn selected_row(&self) -> Option<usize> {
        let selected = self.selected?;
        self.rows.iter().position(|task| task.metrics.pid == selected)
    }

    /// The events that the filter lets pass, the oldest first.
    pub fn log(&self) -> Vec<&Happened> {
        let passes = |event: &&Happened| {
            let class = self.shown.tasks.get(&event.pid).map(|task| task.metrics.class.as_str());
            rows::passes(&self.filter, &event.comm, event.pid, class.unwrap_or_default())
        };
        self.shown.events.iter().filter(passes).collect()
    }

    /// Has anything been seen?
    pub fn has_begun(&self) -> bool {
        !self.live.machine.cpus.is_empty()
    }

    /// How many times faster than it was made the recording is to be played.
    pub fn speed(&self) -> Option<f64> {
        self.replay
    }

    /// Takes over where drawing put what can be clicked.
    pub fn drawn(&mut self, areas: Areas) {
        self.areas = areas;
    }

    /// Takes note of what happened.
    pub fn handle(&mut self, event: Event) -> Flow {
        match event {
            Event::Key(key) => return self.key(&key),
            Event::Mouse(mouse) => self.mouse(mouse),
            Event::Resize => return Flow::Redraw,
            Event::Snapshot(snapshot) => self.take(snapshot),
            Event::Ended(why) => self.ended = Some(why),
            Event::Leave | Event::NoInput => return Flow::Leave,
            Event::Stop => return Flow::Stop,
            Event::Continued => return Flow::Continue,
        }
        Flow::Go
    }

    fn take(&mut self, snapshot: Arc<Snapshot>) {
        self.live = snapshot;
        if !self.frozen {
            self.show_live();
        }
    }

    fn show_live(&mut self) {
        // who reads an old part of the log is not to lose it to what comes
        if self.log_back > 0 {
            let new = self.live.nr_events.saturating_sub(self.shown.nr_events);
            self.log_back += usize::try_from(new).unwrap_or(usize::MAX);
        }
        self.shown = Arc::clone(&self.live);
        self.sort();
        let seen = self.detail.as_ref().and_then(|task| self.shown.tasks.get(&task.metrics.pid));
        if let Some(task) = seen {
            self.detail = Some(Arc::clone(task));
        }
    }

    /// Decides anew which rows there are, and in which order.
    pub(super) fn sort(&mut self) {
        self.rows = rows::rows(&self.shown, &self.filter, self.order);
        if self.selected_row().is_none() {
            self.selected = self.rows.first().map(|task| task.metrics.pid);
        }
    }

    fn key(&mut self, event: &ratatui::crossterm::event::KeyEvent) -> Flow {
        use ratatui::crossterm::event::{KeyCode, KeyModifiers};
        if let Some(action) = keys::action(event, self.typing, self.replay.is_some()) {
            return self.act(action);
        }
        let plain = event.modifiers - KeyModifiers::SHIFT == KeyModifiers::NONE;
        if let (true, true, KeyCode::Char(letter)) = (self.typing, plain, event.code) {
            self.filter.push(letter);
            self.sort();
        }
        Flow::Go
    }

    /// Freezes what is shown, or goes on with what came meanwhile.
    pub(super) fn pause(&mut self) {
        self.frozen = !self.frozen;
        if !self.frozen {
            self.show_live();
        }
    }

    /// Opens the page of the selected task.
    pub(super) fn open(&mut self) {
        let task = self.selected.and_then(|pid| self.shown.tasks.get(&pid));
        if let Some(task) = task {
            self.detail = Some(Arc::clone(task));
            self.page = Page::Detail;
        }
    }

    /// Sorts by a figure; by the same once more turns the order round.
    pub(super) fn sort_by(&mut self, field: usize) {
        self.order = match self.order {
            order if order.field == field => Order { descending: !order.descending, field },
            _ => Order::by(field),
        };
        self.sort();
    }

    /// Moves the columns sideways.
    pub(super) fn sideways(&mut self, columns: isize) {
        self.skipped = self.skipped.saturating_add_signed(columns).min(columns::most_skipped());
    }
}
