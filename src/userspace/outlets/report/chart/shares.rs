// SPDX-License-Identifier: GPL-2.0-only
//! What each CPU's time went to, over time.

use anyhow::Result;
use page::chart::{Chart, Grid};
use page::palette::{Colour, SERIES};

use super::{Rows, Scale, Step, band};
use crate::outlets::report::gather::{Recorded, Share, Span};
use crate::outlets::words::pct;

/// Of a CPU, px.
const ROW: u32 = 52;
/// CPUs that are drawn; the table has all.
const CPUS: usize = 32;

const RT: Colour = SERIES[3];
const EXT: Colour = SERIES[2];

/// `None`: no CPU is known.
pub fn chart(recorded: &Recorded) -> Result<Option<Chart>> {
    let mut cpus: Vec<(usize, &str)> =
        recorded.machine.cpus.iter().map(|(id, cpu)| (*id, cpu.kind.as_str())).collect();
    // RT CPUs first: they are what it is about
    cpus.sort_by_key(|(id, kind)| (*kind != "RT", *id));
    if cpus.is_empty() {
        return Ok(None);
    }
    let drawn: Vec<(usize, &str)> = cpus.iter().copied().take(CPUS).collect();
    let note = match cpus.len() - drawn.len() {
        0 => String::new(),
        more => format!("{more} more CPUs are in the table only."),
    };
    let chart = Chart {
        id: "shares".into(),
        class: "shares",
        title: "What each CPU's time went to".into(),
        desc: "For each CPU over time, stacked: the share in real-time tasks, above it the share \
               in ext tasks. The empty rest is idle, interrupts and the kernel's own."
            .into(),
        note,
        legend: vec![
            (RT.written(), "real-time tasks".into()),
            (EXT.written(), "ext tasks: on an RT CPU, what isolation would have wasted".into()),
        ],
        data: table(recorded, &cpus),
        ..Chart::default()
    };
    let drawn_chart = chart.drawn(
        |_| Rows::height(drawn.len(), ROW),
        |area, _| {
            let rows = Rows { area, n: drawn.len(), px: ROW, until_s: recorded.len_s() };
            for (nth, (id, kind)) in drawn.iter().enumerate() {
                let name = format!("CPU {id} ({kind})");
                let place =
                    rows.row(nth, &name, Scale::Linear(100.0), (3, &|v| format!("{v:.0} %")))?;
                let steps = |of: fn(Share) -> (f64, f64)| steps(&recorded.spans, *id, of);
                band(area, &place, &steps(|s| (0.0, s.rt_pct)), RT)?;
                band(area, &place, &steps(|s| (s.rt_pct, s.rt_pct + s.ext_pct)), EXT)?;
            }
            Ok(())
        },
    );
    drawn_chart.map(Some)
}

fn steps(spans: &[Span], cpu: usize, of: fn(Share) -> (f64, f64)) -> Vec<Step> {
    let step = |span: &Span| {
        let (low, high) = of(span.shares.get(&cpu).copied().unwrap_or_default());
        let (low, high) = (low.min(100.0), high.min(100.0));
        Step { begin_s: span.begin_s, end_s: span.end_s, low, high }
    };
    spans.iter().map(step).collect()
}

fn table(recorded: &Recorded, cpus: &[(usize, &str)]) -> Grid {
    let row = |(id, kind): &(usize, &str)| {
        let share = |of: fn(&Share) -> f64| {
            let mine = |span: &Span| span.shares.get(id).map_or(0.0, of);
            let sum: f64 = recorded.spans.iter().map(|span| mine(span) * span.len_s()).sum();
            let most = recorded.spans.iter().map(mine).fold(0.0, f64::max);
            [pct(sum / recorded.len_s().max(1e-9)), pct(most)]
        };
        let mut cells = vec![format!("{id}"), (*kind).to_owned()];
        cells.extend(share(|s| s.rt_pct));
        cells.extend(share(|s| s.ext_pct));
        cells
    };
    let head = ["CPU", "kind", "real-time, mean", "real-time, most", "ext, mean", "ext, most"];
    Grid::new(&head, cpus.iter().map(row).collect())
}
