// SPDX-License-Identifier: GPL-2.0-only
//! What each CPU spent its time on: stacked shares of the makespan.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::{Area, Chart, CpuRows, Grid, block, failed, label};
use crate::outlets::html::side::Side;
use crate::outlets::units::text;
use crate::result::figures::{self, Unit};
use crate::result::{Cpu, Run};
use page::palette::Colour;
use page::palette::{GRID, INK, PAGE, REST, SERIES};

const RIGHT: i32 = 24;
const AXIS: i32 = 30;

type Part = (&'static str, Colour, fn(&Cpu) -> Option<f64>);

/// From left to right. Idle is the rest, drawn as an empty frame.
const PARTS: [Part; 5] = [
    ("the scene's real-time tasks", SERIES[3], |c| c.rt),
    ("the scene's other tasks", SERIES[2], |c| c.fair),
    ("interrupts", SERIES[1], |c| Some(c.irq)),
    ("all else", REST, |c| c.other),
    // Where the scene's tasks could not be told from others.
    ("busy, not known by whom", SERIES[4], |c| match (c.rt, c.fair, c.other) {
        (None, None, None) => Some((1.0 - c.idle - c.irq).max(0.0)),
        _ => None,
    }),
];

/// `None`: no CPU is known.
pub fn chart(id: String, side: Side) -> Result<Option<Chart>> {
    let cpus = &side.shown.cpus;
    if cpus.is_empty() {
        return Ok(None);
    }
    let rows: Vec<(u32, Vec<Option<f64>>, f64)> = cpus
        .iter()
        .map(|c| {
            let parts = PARTS.iter().map(|(_, _, of)| mean(side.runs, c.cpu, of)).collect();
            (c.cpu, parts, mean(side.runs, c.cpu, &|c| Some(c.idle)).unwrap_or(0.0))
        })
        .collect();
    let known: Vec<usize> =
        (0..PARTS.len()).filter(|i| rows.iter().any(|(_, p, _)| p[*i].is_some())).collect();
    let mut head = vec!["CPU"];
    head.extend(known.iter().map(|i| PARTS[*i].0));
    head.push("idle");
    let cells = |(cpu, parts, idle): &(u32, Vec<Option<f64>>, f64)| {
        let share = |v: Option<f64>| v.map_or("?".into(), |v| text(v, Unit::Share));
        let mut cells = vec![cpu.to_string()];
        cells.extend(known.iter().map(|i| share(parts[*i])));
        cells.push(share(Some(*idle)));
        cells
    };
    let mut legend: Vec<(String, String)> =
        known.iter().map(|i| (PARTS[*i].1.written(), PARTS[*i].0.to_owned())).collect();
    legend.push((PAGE.written(), "idle".into()));
    let chart = Chart {
        id,
        class: "shares",
        title: format!("What the CPUs did, under {}", side.title),
        desc: "A bar for each CPU of the makespan, mean of the runs, from left to right: the \
               scene's real-time tasks, its other tasks, interrupts, all else; the empty rest is \
               idle."
            .into(),
        legend,
        data: Grid::new(&head, rows.iter().map(cells).collect()),
        ..Chart::default()
    };
    let room = CpuRows::of(cpus);
    let (left, row_px) = (room.left as i32, room.height as i32);
    let height = |_| (row_px * rows.len() as i32 + AXIS) as u32;
    let draw = |area: &Area, width: u32| {
        let span = width as i32 - left - RIGHT;
        let x = |share: f64| left + (share.clamp(0.0, 1.0) * f64::from(span)) as i32;
        let bottom = row_px * rows.len() as i32;
        let frame = |upper: i32, lower: i32| {
            let corners = [(x(0.0), upper), (x(1.0), lower)];
            area.draw(&Rectangle::new(corners, INK.drawn())).map_err(failed)
        };
        for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let line = PathElement::new(vec![(x(tick), 0), (x(tick), bottom + 4)], GRID.drawn());
            area.draw(&line).map_err(failed)?;
            label(area, &format!("{:.0} %", tick * 100.0), (x(tick), bottom + 16), HPos::Center)?;
        }
        for (i, (cpu, parts, _)) in rows.iter().enumerate() {
            let (upper, lower) = (row_px * i as i32 + 1, row_px * (i as i32 + 1) - 1);
            room.name(area, i, *cpu, (upper + lower) / 2)?;
            let mut at = 0.0;
            for (part, (_, colour, _)) in parts.iter().zip(PARTS) {
                let to = at + part.unwrap_or(0.0);
                if x(to) > x(at) {
                    // A gap parts neighbours for those who do not see their colours.
                    let gap = i32::from(x(to) > x(at) + 2);
                    block(area, (x(at), upper), (x(to) - gap, lower), colour)?;
                }
                at = to;
            }
            if row_px >= 10 {
                frame(upper, lower)?;
            }
        }
        // Around each of many low bars it would be all that is seen.
        if row_px < 10 { frame(0, bottom) } else { Ok(()) }
    };
    chart.drawn(height, draw).map(Some)
}

/// Over the runs that know it.
fn mean(runs: &[Run], cpu: u32, of: &dyn Fn(&Cpu) -> Option<f64>) -> Option<f64> {
    let mine = runs.iter().flat_map(|run| run.cpus.iter().filter(|c| c.cpu == cpu));
    figures::mean(mine.filter_map(of))
}
