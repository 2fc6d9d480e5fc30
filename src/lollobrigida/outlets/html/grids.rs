// SPDX-License-Identifier: GPL-2.0-only
//! The tables of the page, and what their figures mean.

use super::chart::{Grid, NOTHING};
use super::side::task_name;
use crate::outlets::units::{ns, text};
use crate::result::comparison::{Comparison, Figure};
use crate::result::figures::Unit;
use crate::result::{Group, Latency, Run, Task};

/// The figures of a group, or of the whole run, under each scheduler.
pub struct Ratios {
    pub title: String,
    pub rows: Vec<RatioRow>,
}

/// A figure.
pub struct RatioRow {
    pub title: String,
    pub meaning: String,
    pub cells: Vec<RatioCell>,
}

/// A figure under a scheduler.
pub struct RatioCell {
    pub value: String,
    /// Empty for the first scheduler and where there is none.
    pub ratio: String,
    /// From the least to the greatest of the paired runs; empty as `ratio`.
    pub range: String,
    pub best: bool,
}

/// What the columns of the tables mean.
pub const GLOSSARY: &[(&str, &str)] = &[
    ("makespan", "From the start signal to the end of the last task."),
    ("time", "Execution time: from a task's begin to its end, sleeps included."),
    ("CPU time", "Time on a CPU, by the kernel's own account."),
    ("waited", "Time in which the task could run but was not on a CPU."),
    ("fairness", "Jain's index of the speeds (steps by time) of a group's tasks: (Σx)² / (n·Σx²)."),
    ("slept, preempted", "Times that the task gave the CPU up by itself; that it was taken away."),
    ("moved", "Times that the task changed from one CPU to another."),
    ("evicted", "Times that scx_artis moved the task off a real-time CPU, by cause."),
    (
        "wake-up",
        "From the moment a sleep should have ended to the task's own next instruction; p99: 99 % \
         are not later.",
    ),
    ("missed", "Periods whose burst was late or left out, of all periods."),
    ("item age", "From the making of the oldest item to the end of the burst that used it."),
    ("stdev", "Standard deviation of a sample (n−1)."),
    (
        "ratio",
        "Mean over the first scheduler's mean, ± its standard error; in brackets the least and the \
         greatest ratio of the paired runs.",
    ),
    ("★", "Best mean, with all that the runs cannot tell from it (two standard errors)."),
    ("?", "Not known here; see what is missing."),
];

/// The figures by group.
pub fn ratios(comparison: &Comparison) -> Vec<Ratios> {
    let mut all: Vec<Ratios> = Vec::new();
    for figure in &comparison.figures {
        let title = match &figure.group {
            None => "Whole run".into(),
            Some(group) => format!("Group {group}"),
        };
        let row = ratio_row(figure);
        match all.last_mut().filter(|r| r.title == title) {
            Some(group) => group.rows.push(row),
            None => all.push(Ratios { title, rows: vec![row] }),
        }
    }
    all
}

fn ratio_row(figure: &Figure) -> RatioRow {
    let best = figure.best();
    let cell = |i: usize| {
        let of = |value: Option<f64>| value.map(|v| text(v, figure.unit));
        let mean = of(figure.mean[i]).unwrap_or_else(|| "?".into());
        let stdev = of(figure.stdev[i]).map_or(String::new(), |s| format!(" ± {s}"));
        let ratio = figure.ratio[i].filter(|_| i > 0);
        RatioCell {
            value: mean + &stdev,
            ratio: ratio.map_or(String::new(), |r| {
                let spread = r.spread.map_or(String::new(), |s| format!(" ± {s:.3}"));
                format!("× {:.3}{spread}", r.of_means)
            }),
            range: ratio
                .and_then(|r| r.low.zip(r.high))
                .map_or(String::new(), |(low, high)| format!("[{low:.3}, {high:.3}]")),
            best: best.contains(&i),
        }
    };
    let cells = (0..figure.mean.len()).map(cell).collect();
    RatioRow { title: figure.title.clone(), meaning: figure.meaning.clone(), cells }
}

/// The groups of a run.
pub fn groups(run: &Run) -> Grid {
    let row = |g: &Group| {
        let known = |text: String| if g.finished > 0 { text } else { "?".into() };
        let latency = |l: Option<Latency>, of: fn(&Latency) -> u64| {
            l.filter(|l| l.count > 0).map_or(NOTHING.into(), |l| ns(of(&l)))
        };
        let missed = match g.periods {
            0 => NOTHING.into(),
            n => format!("{} of {n} ({})", g.misses, text(g.misses as f64 / n as f64, Unit::Share)),
        };
        vec![
            g.name.clone(),
            format!("{} of {}", g.finished, g.count),
            known(text(g.wall.mean_ns, Unit::Ns)),
            known(text(g.wall.stdev_ns, Unit::Ns)),
            known(ns(g.wall.min_ns)),
            known(ns(g.wall.max_ns)),
            known(text(g.cpu.mean_ns, Unit::Ns)),
            known(text(g.jain, Unit::Index)),
            latency(g.wakeup, |l| l.p50_ns),
            latency(g.wakeup, |l| l.p99_ns),
            latency(g.item_age, |l| l.p99_ns),
            missed,
        ]
    };
    let head = [
        "group",
        "finished",
        "time, mean",
        "stdev",
        "least",
        "greatest",
        "CPU time",
        "fairness",
        "wake-up p50",
        "wake-up p99",
        "item age p99",
        "missed",
    ];
    Grid::new(&head, run.groups.iter().map(row).collect())
}

/// The tasks of a run.
pub fn tasks(run: &Run) -> Grid {
    let row = |t: &Task| {
        let known = |value: Option<u64>| value.map_or("?".into(), |v| v.to_string());
        let evictions = t.evictions.as_ref().map_or("?".into(), |causes| {
            let parts: Vec<String> =
                causes.iter().filter(|(_, n)| **n > 0).map(|(c, n)| format!("{c} {n}")).collect();
            if parts.is_empty() { "0".into() } else { parts.join(", ") }
        });
        let missed =
            if t.periods > 0 { format!("{} of {}", t.misses, t.periods) } else { NOTHING.into() };
        vec![
            task_name(run, t),
            ns(t.wall_ns),
            ns(t.cpu_ns),
            t.wait_ns.map_or("?".into(), ns),
            t.voluntary_switches.to_string(),
            t.involuntary_switches.to_string(),
            known(t.migrations),
            evictions,
            t.wakeup.filter(|l| l.count > 0).map_or(NOTHING.into(), |l| ns(l.p99_ns)),
            missed,
            t.cut.clone().unwrap_or_default(),
        ]
    };
    let head = [
        "task",
        "time",
        "CPU time",
        "waited",
        "slept",
        "preempted",
        "moved",
        "evicted",
        "wake-up p99",
        "missed",
        "why not finished",
    ];
    Grid::new(&head, run.tasks.iter().map(row).collect())
}
