// SPDX-License-Identifier: GPL-2.0-only
//! Figures of each group, from its tasks.

use crate::actor::report::{Histogram, Report, latency};
use crate::measure::stats::{jain, summary};
use crate::plan::Plan;
use crate::result::{Group, Latency, Task};

/// One for each group of the plan. `tasks` and `reports` are by the plan's index. Times and
/// fairness are those of the tasks that finished; wake-ups, ages and periods are of all.
#[must_use]
pub fn groups(plan: &Plan, tasks: &[Task], reports: &[Option<Report>]) -> Vec<Group> {
    let group = |(index, name): (usize, &String)| {
        let all: Vec<(&Task, &Option<Report>)> =
            tasks.iter().zip(reports).filter(|(task, _)| task.group == index).collect();
        let finished: Vec<&Task> =
            all.iter().map(|(task, _)| *task).filter(|task| task.cut.is_none()).collect();
        let of = |field: fn(&Task) -> u64| -> Vec<u64> {
            finished.iter().map(|task| field(task)).collect()
        };
        let speeds: Vec<f64> = finished.iter().map(|task| speed(task)).collect();
        let merged = |field: fn(&Report) -> Option<&Histogram>| {
            merge(all.iter().filter_map(|(_, report)| field(report.as_ref()?)))
        };
        Group {
            name: name.clone(),
            finished: finished.len() as u32,
            count: all.len() as u32,
            wall: summary(&of(|task| task.wall_ns)),
            cpu: summary(&of(|task| task.cpu_ns)),
            jain: jain(&speeds),
            wakeup: merged(|report| report.wakeup.as_ref()),
            item_age: merged(|report| report.item_age.as_ref()),
            periods: all.iter().map(|(task, _)| task.periods).sum(),
            misses: all.iter().map(|(task, _)| task.misses).sum(),
        }
    };
    plan.groups.iter().enumerate().map(group).collect()
}

/// Steps per ns of wall time.
fn speed(task: &Task) -> f64 {
    task.steps as f64 / task.wall_ns.max(1) as f64
}

fn merge<'h>(histograms: impl Iterator<Item = &'h Histogram>) -> Option<Latency> {
    let sum = histograms.fold(None, |sum: Option<Histogram>, histogram| {
        let mut sum = sum.unwrap_or_default();
        sum.add(histogram);
        Some(sum)
    });
    sum.filter(|sum| sum.count() > 0).as_ref().map(latency)
}
