// SPDX-License-Identifier: GPL-2.0-only
//! What stands side by side: the runs under each scheduler. A single run is one side.

use crate::result::{Group, Run};
use page::palette::{SERIES, series};

/// The runs under one scheduler.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The scheduler.
    pub title: &'a str,
    /// Never empty.
    pub runs: &'a [Run],
    /// Stands for the others where only one can be drawn: that of the median makespan.
    pub shown: &'a Run,
}

impl<'a> Side<'a> {
    /// `None` without runs.
    pub fn new(title: &'a str, runs: &'a [Run]) -> Option<Self> {
        let mut order: Vec<&Run> = runs.iter().collect();
        order.sort_by_key(|run| run.makespan_ns);
        let shown = *order.get(runs.len().saturating_sub(1) / 2)?;
        Some(Self { title, runs, shown })
    }
}

/// A group under a scheduler: a row of the charts about groups.
pub struct Row<'a> {
    pub label: String,
    /// Index of the side, for its colour.
    pub side: usize,
    pub of: Side<'a>,
    pub group: &'a Group,
}

/// Group by group, in each side by side.
pub fn rows<'a>(sides: &[Side<'a>]) -> Vec<Row<'a>> {
    let names = sides.first().map_or(&[][..], |s| &s.shown.groups);
    let row = |name: &str, (side, of): (usize, &Side<'a>)| {
        let group = of.shown.groups.iter().find(|g| g.name == name)?;
        let label =
            if sides.len() > 1 { format!("{name} · {}", of.title) } else { name.to_owned() };
        Some(Row { label, side, of: *of, group })
    };
    names.iter().flat_map(|g| sides.iter().enumerate().filter_map(|s| row(&g.name, s))).collect()
}

/// Which colour each task has on the timeline.
pub struct Keys {
    /// By task index.
    pub of_task: Vec<usize>,
    /// By colour; what it stands for.
    pub names: Vec<String>,
}

impl Keys {
    /// A colour for each task if there are few, otherwise for each group, or, with one
    /// group, in turn.
    pub fn of(run: &Run) -> Self {
        let colours = SERIES.len();
        if run.tasks.len() <= colours {
            let names = run.tasks.iter().map(|t| task_name(run, t)).collect();
            return Self { of_task: (0..run.tasks.len()).collect(), names };
        }
        if let [only] = &run.groups[..] {
            let name = |n: usize| format!("{} {n}, {}, …", only.name, n + colours);
            let of_task = run.tasks.iter().map(|t| t.nth as usize % colours).collect();
            return Self { of_task, names: (0..colours).map(name).collect() };
        }
        let mut names: Vec<String> =
            run.groups.iter().take(colours).map(|g| g.name.clone()).collect();
        if run.groups.len() > colours {
            names.push("all other groups".into());
        }
        Self { of_task: run.tasks.iter().map(|t| t.group.min(colours)).collect(), names }
    }

    /// Colour and name, for a legend.
    pub fn legend(&self) -> Vec<(String, String)> {
        let entry = |(i, name): (usize, &String)| (series(i).written(), name.clone());
        self.names.iter().enumerate().map(entry).collect()
    }
}

/// `group 3`.
pub fn task_name(run: &Run, task: &crate::result::Task) -> String {
    format!("{} {}", run.groups.get(task.group).map_or("?", |g| &g.name), task.nth)
}
