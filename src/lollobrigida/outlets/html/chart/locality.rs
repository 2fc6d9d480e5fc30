// SPDX-License-Identifier: GPL-2.0-only
//! Where each task spent its time: a map of tasks by CPUs. The share is the area of a square,
//! not a shade: areas are seen on paper and with any colour vision.

use std::collections::BTreeMap;

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, Chart, Grid, WIDTHS, block, failed, fitting, label, letters};
use crate::outlets::html::side::{Side, task_name};
use crate::result::Run;
use page::palette::{GRID, SERIES};

/// Tasks beyond which a row stands for a group.
const MOST_TASKS: usize = 48;
/// Of a row, and at most of a column, px.
const CELL: u32 = 24;
/// Of a column at least; below, neighbouring CPUs share one.
const LEAST: u32 = 6;
const HEAD: i32 = 24;
const RIGHT: u32 = 8;

/// A row: name, and share of its time by index of CPU.
type Line = (String, Vec<f64>);

/// `None`: not known of any task.
pub fn chart(id: String, side: Side) -> Result<Option<Chart>> {
    let run = side.shown;
    let lines = lines(run);
    if lines.is_empty() || run.cpus.is_empty() {
        return Ok(None);
    }
    let by = if run.tasks.len() > MOST_TASKS { "group" } else { "task" };
    let cpus: Vec<u32> = run.cpus.iter().map(|c| c.cpu).collect();
    let titles: Vec<String> = cpus.iter().map(|cpu| format!("CPU {cpu}")).collect();
    let mut head = vec![by];
    head.extend(titles.iter().map(String::as_str));
    let cells = |(name, shares): &Line| {
        let share = |s: &f64| format!("{:.1} %", s * 100.0);
        [name.clone()].into_iter().chain(shares.iter().map(share)).collect()
    };
    let each = WIDTHS
        .map(|(_, width)| cpus_per_column(cpus.len(), width - names(&lines, width) - RIGHT))
        .into_iter()
        .fold(1, usize::max);
    let chart = Chart {
        id,
        class: "locality",
        title: format!("Where each {by}'s time was spent, under {}", side.title),
        desc: format!(
            "A row for each {by}, a column for each CPU: the area of a square is the share of the \
             {by}'s time that it spent there; a full cell is all of it."
        ),
        note: if each == 1 {
            String::new()
        } else {
            format!(
                "There are more CPUs than columns have room for: up to {each} neighbours share one, \
                 named by the first."
            )
        },
        data: Grid::new(&head, lines.iter().map(cells).collect()),
        ..Chart::default()
    };
    let height = |_| HEAD as u32 + CELL * lines.len() as u32 + 4;
    chart.drawn(height, |area, width| draw(area, width, &lines, &cpus)).map(Some)
}

/// Width of the names' column, by the longest.
fn names(lines: &[Line], width: u32) -> u32 {
    let longest = lines.iter().map(|(name, _)| letters(name)).max().unwrap_or(0);
    (longest + 16).clamp(48, width / 3)
}

/// Neighbouring CPUs that share a column, 1 if there is room for all.
fn cpus_per_column(cpus: usize, room: u32) -> usize {
    (LEAST * cpus as u32).div_ceil(room).max(1) as usize
}

fn draw(area: &Area, width: u32, lines: &[Line], cpus: &[u32]) -> Result<()> {
    let left = names(lines, width);
    let room = width - left - RIGHT;
    let each = cpus_per_column(cpus.len(), room);
    let columns = cpus.len().div_ceil(each);
    let cell = (room / columns as u32).min(CELL * 2) as i32;
    let side = cell.min(CELL as i32) - 2;
    let x = |column: usize| left as i32 + cell * column as i32;
    let y = |row: usize| HEAD + CELL as i32 * row as i32;
    let (right, bottom) = (x(columns), y(lines.len()));
    let rule = |a: (i32, i32), b: (i32, i32)| {
        area.draw(&PathElement::new(vec![a, b], GRID.drawn())).map_err(failed)
    };
    for row in 0..=lines.len() {
        rule((left as i32, y(row)), (right, y(row)))?;
    }
    // Numbers that would touch each other are left out.
    let widest = cpus.iter().map(|cpu| letters(&cpu.to_string())).max().unwrap_or(0) as i32 + 12;
    let every = (widest + cell - 1).div_euclid(cell).max(1) as usize;
    for (column, of) in cpus.chunks(each).enumerate() {
        rule((x(column), HEAD), (x(column), bottom))?;
        if column % every == 0 {
            label(area, &of[0].to_string(), (x(column) + cell / 2, HEAD / 2), HPos::Center)?;
        }
    }
    rule((right, HEAD), (right, bottom))?;
    label(area, "CPU", (left as i32 - 8, HEAD / 2), HPos::Right)?;
    for (row, (name, shares)) in lines.iter().enumerate() {
        let middle = y(row) + CELL as i32 / 2;
        label(area, &fitting(name, left - 12), (left as i32 - 8, middle), HPos::Right)?;
        for (column, of) in shares.chunks(each).enumerate() {
            let share: f64 = of.iter().sum();
            let edge = (share.clamp(0.0, 1.0).sqrt() * f64::from(side)).round() as i32;
            if share > 0.0 {
                let edge = edge.max(1); // seen, however small
                let (from, top) = (x(column) + (cell - edge) / 2, middle - edge / 2);
                block(area, (from, top), (from + edge, top + edge), SERIES[0])?;
            }
        }
    }
    Ok(())
}

fn lines(run: &Run) -> Vec<Line> {
    let shares = |on: &BTreeMap<u32, u64>| {
        let all = on.values().sum::<u64>().max(1) as f64;
        run.cpus.iter().map(|c| on.get(&c.cpu).copied().unwrap_or(0) as f64 / all).collect()
    };
    if run.tasks.len() <= MOST_TASKS {
        let known = run.tasks.iter().filter_map(|t| t.cpu_time_ns.as_ref().map(|on| (t, on)));
        return known.map(|(t, on)| (task_name(run, t), shares(on))).collect();
    }
    let mut groups: BTreeMap<usize, BTreeMap<u32, u64>> = BTreeMap::new();
    for task in &run.tasks {
        for (cpu, ns) in task.cpu_time_ns.iter().flatten() {
            *groups.entry(task.group).or_default().entry(*cpu).or_default() += ns;
        }
    }
    let name = |index: &usize| run.groups.get(*index).map_or("?".into(), |g| g.name.clone());
    groups.iter().map(|(index, on)| (name(index), shares(on))).collect()
}
