// SPDX-License-Identifier: GPL-2.0-only
//! The columns of the task table: every figure of a task is one, the useful ones first.

use crate::model::{Described, Field, Kind, TaskMetrics};

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its figure: the index in `TaskMetrics::FIELDS`.
    pub field: usize,
    /// Cells.
    pub width: u16,
    /// Is it text, to be written from the left?
    pub text: bool,
}

impl Column {
    /// Its figure's description.
    pub fn described(&self) -> &'static Field {
        &TaskMetrics::FIELDS[self.field]
    }
}

/// Columns that stay when the others are moved sideways: the first so many.
pub const FIXED: usize = 2;

/// The order of the columns: what says most of ARTiS first. Figures not named here follow.
const ORDER: [&str; 24] = [
    "pid",
    "comm",
    "class",
    "cpu",
    "cpu_pct",
    "on_rt_pct",
    "attempts_per_s",
    "evictions_per_s",
    "wait_p99_us",
    "top_cause",
    "runnable",
    "calm",
    "rt_prio",
    "rt1",
    "nice",
    "wait_p50_us",
    "wait_max_us",
    "runs_per_s",
    "moves_rt",
    "hits",
    "misses",
    "attempts",
    "evictions",
    "run_s",
];

/// All columns in their order.
pub fn all() -> Vec<Column> {
    let fields = TaskMetrics::FIELDS;
    let named = ORDER.iter().filter_map(|name| fields.iter().position(|f| f.name == *name));
    let others = (0..fields.len()).filter(|field| !ORDER.contains(&fields[*field].name));
    named.chain(others).map(column).collect()
}

/// The index in `TaskMetrics::FIELDS` of the figure with this name or title.
///
/// # Errors
/// When there is none: which there are.
pub fn named(text: &str) -> Result<usize, String> {
    let found = |field: &Field| field.name == text || field.title == text;
    TaskMetrics::FIELDS.iter().position(found).ok_or_else(|| {
        let names: Vec<_> = TaskMetrics::FIELDS.iter().map(|field| field.name).collect();
        format!("\"{text}\" is no figure of a task; there are: {}", names.join(", "))
    })
}

fn column(field: usize) -> Column {
    let described = &TaskMetrics::FIELDS[field];
    let text = described.kind == Kind::Label && !matches!(described.name, "pid" | "tgid");
    let width = match (described.name, described.unit) {
        ("pid" | "tgid", _) => 7,
        ("comm", _) => 15,
        ("class", _) => 9,
        ("policy", _) => 8,
        ("top_cause", _) => 20,
        ("wait_max_after", _) => 23,
        ("cpu", _) => 3,
        ("nice" | "rt_prio" | "rt1" | "runnable" | "calm" | "may_nrt" | "may_rt", _) => 1,
        (_, "%") => 4,
        (_, "s") => 7,
        _ => 5,
    };
    Column { field, width: width.max(described.title.chars().count() as u16), text }
}

/// The columns that fit into `width` cells when the first `skipped` of those that can be moved
/// are left out. The last one may get less than it asks for, if it is text.
pub fn fitting(skipped: usize, width: u16) -> Vec<Column> {
    let mut columns = all();
    columns.drain(FIXED..FIXED + skipped.min(most_skipped()));
    let mut left = width;
    let mut shown = Vec::new();
    for mut column in columns {
        if column.width > left {
            if !column.text || left < 6 {
                break;
            }
            column.width = left;
        }
        left -= column.width;
        left = left.saturating_sub(1); // the space between two
        shown.push(column);
    }
    shown
}

/// The greatest number of columns that may be left out: one that moves remains.
pub fn most_skipped() -> usize {
    TaskMetrics::FIELDS.len() - FIXED - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_one_column() {
        let mut fields: Vec<_> = all().iter().map(|column| column.field).collect();
        assert_eq!(fields.len(), TaskMetrics::FIELDS.len());
        fields.sort_unstable();
        assert_eq!(fields, (0..TaskMetrics::FIELDS.len()).collect::<Vec<_>>());
        for name in ORDER {
            assert!(named(name).is_ok(), "{name} is gone from TaskMetrics");
        }
    }

    #[test]
    fn eighty_cells_hold_what_matters() {
        let shown: Vec<_> = fitting(0, 80).iter().map(|column| column.described().name).collect();
        assert_eq!(shown, ORDER[..10]);
        let total: u16 = fitting(0, 80).iter().map(|column| column.width + 1).sum();
        assert!(total <= 81, "{total}");
    }

    #[test]
    fn every_column_can_be_reached() {
        for column in all() {
            let seen = (0..=most_skipped()).any(|skipped| {
                fitting(skipped, 80).iter().any(|shown| shown.field == column.field)
            });
            assert!(seen, "{}", column.described().name);
        }
        assert_eq!(fitting(usize::MAX, 80).len(), FIXED + 1);
    }

    #[test]
    fn a_wrong_name_is_told_the_right_ones() {
        assert_eq!(named("cpu%"), named("cpu_pct"));
        let error = named("cpupct").expect_err("unknown");
        assert!(error.contains("cpu_pct") && error.contains("cpupct"), "{error}");
    }
}
