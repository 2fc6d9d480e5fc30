// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs: what they spend their time with.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Row, Table};

use super::super::store::Store;
use super::super::text::{count, percent, time};
use super::super::{Areas, Theme};
use crate::model::CpuMetrics;

/// A part of a bar.
struct Part {
    name: &'static str,
    share_pct: f64,
    symbol: &'static str,
    style: Style,
}

/// What a CPU's time consists of, the rest apart: first what matters most.
fn parts(cpu: &CpuMetrics, theme: Theme) -> Vec<Part> {
    vec![
        Part { name: "RT", share_pct: cpu.rt_pct, symbol: "█", style: theme.rt() },
        Part { name: "ext", share_pct: cpu.ext_pct, symbol: "▒", style: theme.ext() },
    ]
}

/// What stands for the rest.
const IDLE: &str = "·";

/// The parts side by side on `width` cells, the rest idle.
fn bar(parts: &[Part], width: u16, theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    let (mut share, mut filled) = (0.0, 0);
    for part in parts {
        share += part.share_pct.max(0.0);
        let to = (share / 100.0 * f64::from(width)).round().min(f64::from(width)) as usize;
        line.push_span(Span::styled(part.symbol.repeat(to - filled), part.style));
        filled = to;
    }
    line.push_span(Span::styled(IDLE.repeat(usize::from(width) - filled), theme.idle()));
    line
}

/// As many CPUs as fit, RT CPUs first if that is not all.
pub fn panel(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let mut cpus: Vec<_> = store.shown.machine.cpus.iter().collect();
    let room = usize::from(area.height.saturating_sub(1));
    let hidden = cpus.len().saturating_sub(room);
    if hidden > 0 {
        cpus.sort_by_key(|(id, cpu)| (cpu.is_rt == 0, **id));
        cpus.truncate(room);
    }
    table(frame, area, store, &cpus, hidden);
}

/// All CPUs, on the whole screen.
pub fn page(frame: &mut Frame<'_>, area: Rect, store: &Store, areas: &mut Areas) {
    let all = &store.shown.machine.cpus;
    areas.page_rows = usize::from(area.height.saturating_sub(1));
    areas.last_from = all.len().saturating_sub(areas.page_rows);
    let from = store.cpus_from.min(areas.last_from);
    let cpus: Vec<_> = all.iter().skip(from).take(areas.page_rows).collect();
    table(frame, area, store, &cpus, 0);
}

/// A column between the bar and what runs: one number.
struct Number {
    title: &'static str,
    width: u16,
    /// About kernel sections of tasks that could leave: nothing to say of an NRT CPU.
    rt_only: bool,
    /// Only where there is much room.
    wide: bool,
    text: fn(&CpuMetrics) -> String,
}

macro_rules! numbers {
    ($($title:literal $width:literal $rt_only:literal $wide:literal $text:expr;)*) => {
        [$(Number {
            title: $title,
            width: $width,
            rt_only: $rt_only,
            wide: $wide,
            text: $text,
        },)*]
    };
}

const NUMBERS: [Number; 9] = numbers! {
    "RT%" 4 false false |cpu| percent(cpu.rt_pct);
    "ext%" 4 false false |cpu| percent(cpu.ext_pct);
    "load" 5 false false |cpu| format!("{:.1}", cpu.load);
    "att/s" 5 false false |cpu| count(cpu.attempts_per_s.round());
    "evic/s" 6 true false |cpu| count(cpu.evictions_per_s.round());
    "body" 4 true true |cpu| count(cpu.bodies_on_rt as f64);
    "us/s" 5 true true |cpu| count(cpu.residence_us_per_s.round());
    "worst" 5 true false |cpu| time(cpu.residence_max_us);
    "q" 3 false false |cpu| count(cpu.queued as f64);
};
/// From this many cells on there is much room.
const WIDE: u16 = 90;
/// Cells of the id and the kind.
const ID: u16 = 3;

fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    store: &Store,
    cpus: &[(&usize, &CpuMetrics)],
    hidden: usize,
) {
    let theme = store.theme;
    let bar_width = (area.width / 5).min(60);
    let numbers: Vec<_> =
        NUMBERS.iter().filter(|number| area.width >= WIDE || !number.wide).collect();
    let widths = [ID, ID, bar_width].into_iter().chain(numbers.iter().map(|number| number.width));
    let used: u16 = widths.clone().map(|width| width + 1).sum();
    let last = usize::from(area.width.saturating_sub(used));
    let widths = widths.map(Constraint::Length).chain([Constraint::Min(0)]);
    let rows = cpus.iter().map(|(id, cpu)| {
        let mut cells = vec![
            Line::from(id.to_string()).right_aligned(),
            Line::styled(
                cpu.kind.clone(),
                if cpu.is_rt == 1 { theme.strong() } else { Style::new() },
            ),
            bar(&parts(cpu, theme), bar_width, theme),
        ];
        cells.extend(numbers.iter().map(|number| cell(number, cpu, theme)));
        cells.push(running(cpu, last, theme));
        Row::new(cells)
    });
    // in the colours of the bars, which the head's style would turn round
    let mut legend = Line::default();
    for part in parts(&CpuMetrics::default(), theme) {
        let symbol = part.style.remove_modifier(Modifier::REVERSED);
        legend.push_span(Span::styled(part.symbol, symbol));
        legend.push_span(format!("{} ", part.name));
    }
    legend.push_span(format!("{IDLE}idle"));
    let running = if hidden == 0 { "running".to_owned() } else { format!("+{hidden}: press c") };
    let mut head = vec![Line::from("CPU").right_aligned(), Line::from("set"), legend];
    head.extend(numbers.iter().map(|number| Line::from(number.title).right_aligned()));
    head.push(Line::from(running));
    let head = Row::new(head).style(theme.head());
    frame.render_widget(Table::new(rows, widths).header(head).column_spacing(1), area);
}

fn cell(number: &Number, cpu: &CpuMetrics, theme: Theme) -> Line<'static> {
    let silent = number.rt_only && cpu.is_rt == 0;
    let text = if silent { "-".to_owned() } else { (number.text)(cpu) };
    // a body that ran here is told where the longest section is, too: that was one
    let alarm = cpu.bodies_on_rt > 0 && matches!(number.title, "body" | "worst");
    Line::styled(text, if alarm { theme.alarm() } else { Style::new() }).right_aligned()
}

/// Name and id, in `width` cells: the name is cut, for the id says more.
fn running(cpu: &CpuMetrics, width: usize, theme: Theme) -> Line<'static> {
    let rt = if cpu.running_rt == 1 { " RT" } else { "" };
    let id = format!("/{}{rt}", cpu.running_pid);
    let name: String = cpu.running_comm.chars().take(width.saturating_sub(id.len())).collect();
    match cpu.running_pid {
        0 => Line::styled("-", theme.dim()),
        _ if cpu.running_rt == 1 => Line::styled(name + &id, theme.rt()),
        _ => Line::from(name + &id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(rt_pct: f64, ext_pct: f64) -> String {
        let cpu = CpuMetrics { rt_pct, ext_pct, ..CpuMetrics::default() };
        let theme = Theme::new(false);
        bar(&parts(&cpu, theme), 8, theme).to_string()
    }

    #[test]
    fn a_bar_is_full_and_no_longer() {
        assert_eq!(drawn(25.0, 50.0), "██▒▒▒▒··");
        assert_eq!(drawn(0.0, 0.0), "········");
        assert_eq!(drawn(100.0, 0.0), "████████");
        assert_eq!(drawn(60.0, 60.0), "█████▒▒▒", "shares of a moment need not fit");
        assert_eq!(drawn(-1.0, 100.0), "▒▒▒▒▒▒▒▒");
    }
}
