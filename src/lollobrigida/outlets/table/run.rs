// SPDX-License-Identifier: GPL-2.0-only
//! One run: tasks, groups, CPUs, makespan, then what to know before believing them.

use std::collections::BTreeMap;

use super::{MANY_TASKS, Style, heading, item, notes, section};
use crate::outlets::units::{ns, text};
use crate::result::figures::Unit;
use crate::result::{Cpu, Group, Latency, Run, Summary, Task};

/// Width of a column of [`locality`]: `CPU 10` and the gap.
const CPU_COLUMN: usize = 8;

/// Title of the column of lists in [`locality`].
const PLACES: &str = "CPUs";

/// One run.
#[must_use]
pub fn render(run: &Run, style: Style) -> String {
    let mut out = heading(&format!("{} under {}", run.scene, named(run)), style);
    if !run.good.is_empty() {
        out += &item(&format!("good: {}", run.good), style.width);
    }
    if style.every_task || run.tasks.len() <= MANY_TASKS {
        tasks(&mut out, style, run);
    }
    groups(&mut out, style, run);
    if run.groups.iter().any(|g| g.wakeup.or(g.item_age).is_some() || g.periods > 0) {
        latencies(&mut out, style, run);
    }
    cpus(&mut out, style, &run.cpus);
    out += &format!("\n{} {}", style.bold("makespan"), ns(run.makespan_ns));
    if let Some(uj) = run.energy_uj {
        out += &format!(", {} {}", style.bold("energy"), text(uj as f64, Unit::Uj));
    }
    out += if run.cut { " (cut: not all tasks finished)\n" } else { "\n" };
    notes(&mut out, style, &run.warnings, &run.missing, &run.sources);
    out
}

fn named(run: &Run) -> String {
    match &run.scheduler.ops {
        Some(ops) if *ops != run.scheduler.name => format!("{} ({ops})", run.scheduler.name),
        _ => run.scheduler.name.clone(),
    }
}

/// A column: its title and its text for a row; `None` for "not known".
type Column<'a, T> = (&'a str, Box<dyn Fn(&T) -> Option<String> + 'a>);

/// Columns that no row knows are left out.
fn rows<T>(out: &mut String, style: Style, title: &str, rows: &[T], columns: &[Column<T>]) {
    let shown: Vec<&Column<T>> =
        columns.iter().filter(|(_, of)| rows.iter().any(|row| of(row).is_some())).collect();
    let titles: Vec<&str> = shown.iter().map(|(title, _)| *title).collect();
    let mut table = style.table(&titles, &[PLACES]);
    for row in rows {
        table.add_row(shown.iter().map(|(_, of)| of(row).unwrap_or_else(|| "?".into())));
    }
    section(out, style, title, &table);
}

fn tasks(out: &mut String, style: Style, run: &Run) {
    let some = |of: fn(&Task) -> u64| {
        // A column of zeros tells nothing.
        let any = run.tasks.iter().any(|t| of(t) > 0);
        move |t: &Task| any.then(|| of(t).to_string())
    };
    let columns: Vec<Column<Task>> = vec![
        ("task", Box::new(|t: &Task| Some(name(run, t)))),
        ("time", Box::new(|t: &Task| Some(ns(t.wall_ns)))),
        ("CPU", Box::new(|t: &Task| Some(ns(t.cpu_ns)))),
        ("waited", Box::new(|t: &Task| t.wait_ns.map(ns))),
        ("slept", Box::new(some(|t| t.voluntary_switches))),
        ("preempted", Box::new(some(|t| t.involuntary_switches))),
        ("moved", Box::new(|t: &Task| t.migrations.map(|n| n.to_string()))),
        ("evicted", Box::new(|t: &Task| t.evictions.as_ref().map(evictions))),
    ];
    rows(out, style, "tasks", &run.tasks, &columns);
    let cut: Vec<&Task> = run.tasks.iter().filter(|t| t.cut.is_some()).collect();
    for task in cut {
        let why = task.cut.as_deref().unwrap_or_default();
        *out += &item(&format!("{} did not finish: {why}", name(run, task)), style.width);
    }
    if run.tasks.iter().any(|t| t.cpu_time_ns.is_some()) {
        locality(out, style, run);
    }
}

/// A column for each CPU where there is room for them, otherwise a list in each row.
fn locality(out: &mut String, style: Style, run: &Run) {
    let title = "share of each task's time on each CPU, %";
    let widest = run.tasks.iter().map(|t| name(run, t).chars().count()).max().unwrap_or(0);
    let room = usize::from(style.width).saturating_sub(widest + 2) / CPU_COLUMN;
    let numbers: Vec<String> = run.cpus.iter().map(|c| format!("CPU\u{a0}{}", c.cpu)).collect();
    let mut columns: Vec<Column<Task>> = vec![("task", Box::new(|t: &Task| Some(name(run, t))))];
    if run.cpus.len() <= room {
        for (cpu, number) in run.cpus.iter().zip(&numbers) {
            columns
                .push((number, Box::new(|t| t.cpu_time_ns.as_ref().map(|on| share(on, cpu.cpu)))));
        }
    } else {
        columns.push((PLACES, Box::new(|t| t.cpu_time_ns.as_ref().map(places))));
    }
    rows(out, style, title, &run.tasks, &columns);
}

/// With a mark when it did not finish.
fn name(run: &Run, task: &Task) -> String {
    let group = run.groups.get(task.group).map_or("?", |g| &g.name);
    format!("{group}\u{a0}{}{}", task.nth, if task.cut.is_some() { "\u{a0}†" } else { "" })
}

fn evictions(causes: &BTreeMap<String, u64>) -> String {
    causes.values().sum::<u64>().to_string()
}

/// Nothing for a CPU where the task never was, so that the others are seen.
fn share(on: &BTreeMap<u32, u64>, cpu: u32) -> String {
    let all: u64 = on.values().sum();
    match on.get(&cpu) {
        None | Some(0) => "·".into(),
        Some(ns) => format!("{:.0}", 100.0 * *ns as f64 / all as f64),
    }
}

/// `0:25% 3:75%`: CPUs with at least half a per cent of the task's time.
fn places(on: &BTreeMap<u32, u64>) -> String {
    let all: u64 = on.values().sum();
    let share = |ns: u64| 100.0 * ns as f64 / all as f64;
    let parts: Vec<String> = on
        .iter()
        .filter(|(_, ns)| share(**ns) >= 0.5)
        .map(|(cpu, ns)| format!("{cpu}:{:.0}%", share(*ns)))
        .collect();
    parts.join(" ")
}

fn groups(out: &mut String, style: Style, run: &Run) {
    let known = |g: &Group, of: &dyn Fn(&Group) -> String| (g.finished > 0).then(|| of(g));
    let mean =
        |s: &Summary| format!("{} ± {}", text(s.mean_ns, Unit::Ns), text(s.stdev_ns, Unit::Ns));
    let columns: Vec<Column<Group>> = vec![
        ("group", Box::new(|g: &Group| Some(g.name.clone()))),
        ("done", Box::new(|g: &Group| Some(format!("{}/{}", g.finished, g.count)))),
        ("time, mean ± stdev", Box::new(move |g| known(g, &|g| mean(&g.wall)))),
        ("min", Box::new(move |g| known(g, &|g| ns(g.wall.min_ns)))),
        ("max", Box::new(move |g| known(g, &|g| ns(g.wall.max_ns)))),
        ("CPU, mean", Box::new(move |g| known(g, &|g| text(g.cpu.mean_ns, Unit::Ns)))),
        ("fairness", Box::new(move |g| known(g, &|g| text(g.jain, Unit::Index)))),
    ];
    rows(out, style, "groups", &run.groups, &columns);
}

fn latencies(out: &mut String, style: Style, run: &Run) {
    let of =
        |name: &str, l: Option<Latency>| l.filter(|l| l.count > 0).map(|l| (name.to_owned(), l));
    let lines: Vec<(String, Latency)> = run
        .groups
        .iter()
        .flat_map(|g| {
            [
                of(&format!("{}: wake-up", g.name), g.wakeup),
                of(&format!("{}: item age", g.name), g.item_age),
            ]
        })
        .flatten()
        .collect();
    if !lines.is_empty() {
        let columns: Vec<Column<(String, Latency)>> = vec![
            ("latency", Box::new(|(name, _)| Some(name.clone()))),
            ("count", Box::new(|(_, l)| Some(l.count.to_string()))),
            ("mean", Box::new(|(_, l)| Some(text(l.mean_ns, Unit::Ns)))),
            ("p50", Box::new(|(_, l)| Some(ns(l.p50_ns)))),
            ("p90", Box::new(|(_, l)| Some(ns(l.p90_ns)))),
            ("p99", Box::new(|(_, l)| Some(ns(l.p99_ns)))),
            ("p99.9", Box::new(|(_, l)| Some(ns(l.p999_ns)))),
            ("max", Box::new(|(_, l)| Some(ns(l.max_ns)))),
        ];
        rows(out, style, "latencies", &lines, &columns);
    }
    for g in run.groups.iter().filter(|g| g.periods > 0) {
        let share = text(g.misses as f64 / g.periods as f64, Unit::Share);
        *out += &item(
            &format!("{}: {} of {} periods missed ({share})", g.name, g.misses, g.periods),
            style.width,
        );
    }
}

fn cpus(out: &mut String, style: Style, cpus: &[Cpu]) {
    let share = |value: f64| Some(text(value, Unit::Share));
    let columns: Vec<Column<Cpu>> = vec![
        ("CPU", Box::new(|c: &Cpu| Some(c.cpu.to_string()))),
        ("real-time", Box::new(move |c: &Cpu| c.rt.and_then(share))),
        ("normal", Box::new(move |c: &Cpu| c.fair.and_then(share))),
        ("irq", Box::new(move |c: &Cpu| share(c.irq))),
        ("other", Box::new(move |c: &Cpu| c.other.and_then(share))),
        ("idle", Box::new(move |c: &Cpu| share(c.idle))),
    ];
    rows(out, style, "CPUs, share of the makespan", cpus, &columns);
}
