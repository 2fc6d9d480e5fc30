// SPDX-License-Identifier: GPL-2.0-only
//! Who ran where over time: a lane for each CPU.

use anyhow::Result;
use plotters::prelude::*;

use super::lanes::{Lane, lanes};
use super::{Area, Chart, CpuRows, Grid, WIDTHS, block, failed, font};
use crate::outlets::html::side::{Keys, Side};
use crate::outlets::units::ns;
use page::palette::{GRID, INK, series};

/// For the time axis below, px.
const BOTTOM: u32 = 44;
const RIGHT: u32 = 20;
const TOP: u32 = 6;

/// The time axis ends at `until_ns`, the same for all that are compared. `None`: nothing
/// was recorded.
pub fn chart(id: String, side: Side, keys: &Keys, until_ns: u64) -> Result<Option<Chart>> {
    let run = side.shown;
    if run.timeline.is_empty() || until_ns == 0 {
        return Ok(None);
    }
    let rows = CpuRows::of(&run.cpus);
    let of_width = |width: u32| lanes(run, &keys.of_task, until_ns, width - rows.left - RIGHT);
    let merged = WIDTHS.map(|(_, width)| of_width(width).iter().any(|lane| lane.merged));
    let desc = format!(
        "Timeline of {} CPUs over {}: one lane for each CPU, coloured by who ran there; blank \
         where none of the scene's tasks ran.",
        run.cpus.len(),
        ns(until_ns)
    );
    let note = match merged {
        [true, _] => {
            "On some CPUs there were more changes than can be drawn: there every point shows who \
             had most of its time. The table has the shares of all."
        }
        [false, true] => {
            "On a narrow page every point shows who had most of its time, where there were more \
             changes than can be drawn."
        }
        [false, false] => "",
    };
    let chart = Chart {
        id,
        class: "timeline",
        title: format!("Who ran where, under {}", side.title),
        desc,
        note: note.into(),
        legend: keys.legend(),
        data: data(side, keys),
        ..Chart::default()
    };
    let height = |_| TOP + BOTTOM + rows.height * run.cpus.len() as u32;
    chart.drawn(height, |area, width| draw(area, width, &of_width(width), rows, until_ns)).map(Some)
}

fn draw(area: &Area, width: u32, lanes: &[Lane], rows: CpuRows, until_ns: u64) -> Result<()> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(TOP)
        .margin_right(RIGHT)
        .set_label_area_size(LabelAreaPosition::Left, rows.left)
        .set_label_area_size(LabelAreaPosition::Bottom, BOTTOM)
        .build_cartesian_2d(0.0..until_ns as f64, 0.0..lanes.len() as f64)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .x_labels(if width < 500 { 4 } else { 9 })
        .x_label_formatter(&|v| ns(*v as u64))
        .label_style(font())
        .axis_style(INK.drawn())
        .bold_line_style(GRID.drawn())
        .light_line_style(TRANSPARENT)
        .x_desc("time since the start signal")
        .axis_desc_style(font())
        .draw()
        .map_err(failed)?;
    let (plot, _) = chart.plotting_area().get_pixel_range();
    let x =
        |at: u64| plot.start + (at as f64 / until_ns as f64 * f64::from(plot.len() as u32)) as i32;
    for (i, lane) in lanes.iter().enumerate() {
        let top = (TOP + rows.height * i as u32) as i32;
        let (upper, lower) = (top + 1, top + rows.height as i32 - 1);
        rows.name(area, i, lane.cpu, (upper + lower) / 2)?;
        for b in &lane.blocks {
            let (from, to) = (x(b.from_ns), x(b.to_ns));
            // A point's gap parts neighbours of one colour.
            let to = if lane.merged || to - from < 3 { to.max(from + 1) } else { to - 1 };
            block(area, (from, upper), (to, lower), series(b.key))?;
        }
    }
    Ok(())
}

/// Share of the makespan that each colour had on each CPU.
fn data(side: Side, keys: &Keys) -> Grid {
    let run = side.shown;
    let mut head = vec!["CPU"];
    head.extend(keys.names.iter().map(String::as_str));
    let row = |cpu: u32| {
        let mut had = vec![0; keys.names.len()];
        for span in run.timeline.iter().filter(|s| s.cpu == cpu) {
            if let Some(had) = keys.of_task.get(span.task as usize).and_then(|k| had.get_mut(*k)) {
                *had += span.to_ns - span.from_ns;
            }
        }
        let share = |ns: u64| format!("{:.1} %", 100.0 * ns as f64 / run.makespan_ns as f64);
        [cpu.to_string()].into_iter().chain(had.into_iter().map(share)).collect()
    };
    Grid::new(&head, run.cpus.iter().map(|c| row(c.cpu)).collect())
}
