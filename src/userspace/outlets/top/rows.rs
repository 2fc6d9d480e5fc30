// SPDX-License-Identifier: GPL-2.0-only
//! Which tasks are rows of the table, and in which order.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::model::{Described, Kind, Snapshot, Task, TaskMetrics, Value};

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Index in `TaskMetrics::FIELDS`.
    pub field: usize,
    /// The greatest first?
    pub descending: bool,
}

impl Order {
    /// By this figure, as one would look at it first: great numbers and the begin of the alphabet
    /// on top.
    pub fn by(field: usize) -> Self {
        Self { field, descending: TaskMetrics::FIELDS[field].kind != Kind::Label }
    }
}

/// The tasks that `filter` lets pass, in order; equal ones by their id.
pub fn rows(snapshot: &Snapshot, filter: &str, order: Order) -> Vec<Arc<Task>> {
    let mut rows: Vec<_> = snapshot
        .tasks
        .values()
        .filter(|task| {
            let metrics = &task.metrics;
            passes(filter, &metrics.comm, metrics.pid, &metrics.class)
        })
        .cloned()
        .collect();
    // stable, and the tasks come by their id
    rows.sort_by(|a, b| {
        let (a, b) = (a.metrics.values(), b.metrics.values());
        let ordering = compare(a[order.field], b[order.field]);
        if order.descending { ordering.reverse() } else { ordering }
    });
    rows
}

/// Does the filter let something with this name, id and class pass?
pub fn passes(filter: &str, comm: &str, pid: u64, class: &str) -> bool {
    let wanted = filter.trim().to_lowercase();
    wanted.is_empty()
        || comm.to_lowercase().contains(&wanted)
        || class.to_lowercase() == wanted
        || pid.to_string().starts_with(&wanted)
}

/// The hard real-time tasks, those with the highest priority first.
pub fn hard(snapshot: &Snapshot) -> Vec<Arc<Task>> {
    let hard = |task: &&Arc<Task>| task.metrics.class == "RT0";
    let mut rows: Vec<_> = snapshot.tasks.values().filter(hard).cloned().collect();
    rows.sort_by_key(|task| std::cmp::Reverse(task.metrics.rt_prio));
    rows
}

fn compare(a: Value<'_>, b: Value<'_>) -> Ordering {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => a.to_lowercase().cmp(&b.to_lowercase()),
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(&b),
        _ => Ordering::Equal, // two values of one field are of one kind
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn pids(filter: &str, order: Order) -> Vec<u64> {
        rows(&sample::snapshot(), filter, order).iter().map(|task| task.metrics.pid).collect()
    }

    #[test]
    fn sorted_by_each_figure_both_ways() {
        let snapshot = sample::snapshot();
        for field in 0..TaskMetrics::FIELDS.len() {
            for descending in [false, true] {
                let rows = rows(&snapshot, "", Order { field, descending });
                assert_eq!(rows.len(), snapshot.tasks.len());
                for pair in rows.windows(2) {
                    let (a, b) = (pair[0].metrics.values(), pair[1].metrics.values());
                    let wrong = if descending { Ordering::Less } else { Ordering::Greater };
                    let name = TaskMetrics::FIELDS[field].name;
                    assert_ne!(compare(a[field], b[field]), wrong, "{name} {descending}");
                }
            }
        }
    }

    #[test]
    fn numbers_begin_with_the_greatest_and_names_with_a() {
        let name = TaskMetrics::FIELDS.iter().position(|field| field.name == "comm");
        assert!(!Order::by(name.expect("a name")).descending);
        let load = TaskMetrics::FIELDS.iter().position(|field| field.name == "cpu_pct");
        assert!(Order::by(load.expect("a load")).descending);
    }

    #[test]
    fn filtered_by_name_id_and_class() {
        let by = Order { field: 0, descending: false };
        assert_eq!(pids("CYCLIC", by), [900, 901]);
        assert_eq!(pids(" rt0 ", by), [900, 901]);
        assert_eq!(pids("90", by), [900, 901]);
        assert_eq!(pids("bound", by), [1500]);
        assert_eq!(pids("no such task", by), [0u64; 0]);
        assert!(pids("", by).len() > 4);
    }
}
