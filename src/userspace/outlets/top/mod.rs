// SPDX-License-Identifier: GPL-2.0-only
//! The view on a terminal: `scx_artis top`, and the daemon itself.
//!
//! Snapshots, keys, the mouse and signals come as one kind of [`event::Event`]; [`store`] takes
//! them and knows all that is shown; [`draw`] only reads it; [`run`] lets them take turns.

mod act;
pub mod columns;
pub mod command;
mod draw;
pub mod event;
pub mod inside;
pub mod keys;
pub mod pump;
pub mod rows;
pub mod run;
#[cfg(test)]
mod sample;
mod stderr;
pub mod store;
pub mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod theme;
mod why;

use ratatui::layout::Rect;

pub use theme::Theme;

/// Where drawing put what can be clicked, and how much fits.
#[derive(Clone, Debug, Default)]
pub struct Areas {
    /// Titles of columns, with their index in `TaskMetrics::FIELDS`.
    pub titles: Vec<(Rect, usize)>,
    /// Rows of tasks, with their ids.
    pub tasks: Vec<(Rect, u64)>,
    /// Rows of the list that the user moves in.
    pub page_rows: usize,
    /// The greatest number of its lines that can be out of sight, of a list without a selection.
    pub last_from: usize,
    /// First task in sight.
    pub tasks_from: usize,
}
