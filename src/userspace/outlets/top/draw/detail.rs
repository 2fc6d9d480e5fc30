// SPDX-License-Identifier: GPL-2.0-only
//! All about one task.

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Row, Table};

use super::super::store::Store;
use super::super::text::{count, percent, time, time_ns};
use super::super::{Theme, why};
use super::log;
use super::rt0::history;
use crate::model::{Point, Task};

/// The page of a task.
pub fn draw(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let Some(task) = &store.detail else { return };
    let cpus = strip_cpus(task);
    let why = why::sentences(task, &store.shown);
    let why: Vec<_> =
        textwrap::wrap(&why, usize::from(area.width)).into_iter().map(Line::from).collect();
    let figures = figures(task, store);
    let (past_rows, events_least) = if area.height < 24 { (3, 3) } else { (5, 4) };
    let fixed = 1 + why.len() as u16 + past_rows;
    let strip = (cpus.len() as u16 + 1).min(area.height / 4).max(2);
    let middle = task.causes.len().max(figures.len()) as u16 + 1;
    // the middle and the events share what is left
    let middle = middle.min(area.height.saturating_sub(fixed + strip + events_least));
    let parts = [
        Constraint::Length(1),
        Constraint::Length(why.len() as u16),
        Constraint::Length(middle),
        Constraint::Length(past_rows),
        Constraint::Length(strip),
        Constraint::Min(0),
    ];
    let layout = Layout::vertical(parts).flex(Flex::Legacy);
    let [title, why_area, middle, past, strip, events] = layout.areas(area);
    frame.render_widget(headline(task, store, area.width), title);
    frame.render_widget(Text::from(why), why_area);
    let halves = [Constraint::Fill(4), Constraint::Length(1), Constraint::Fill(5)];
    let [one, _, other] = Layout::horizontal(halves).areas(middle);
    causes(frame, one, task, store.theme);
    let mut text = Text::from(head("prediction and figures", other, store.theme));
    text.extend(figures);
    frame.render_widget(text, other);
    histories(frame, past, task, store.theme);
    placement_strip(frame, strip, task, &cpus, store);
    log::of_task(frame, events, store, task.metrics.pid);
}

fn headline(task: &Task, store: &Store, width: u16) -> Line<'static> {
    let metrics = &task.metrics;
    let prio = match metrics.rt_prio {
        0 => format!("nice {}", metrics.nice),
        prio => format!("priority {prio}"),
    };
    let gone = !store.shown.tasks.contains_key(&metrics.pid);
    let gone = if gone { "gone: " } else { "" };
    let text = format!(
        "{gone}{}/{} of process {}  class {}  {} {prio}  {} CPUs allowed",
        metrics.comm, metrics.pid, metrics.tgid, metrics.class, metrics.policy, task.cpus_allowed
    );
    Line::styled(format!("{text:<0$}", usize::from(width)), store.theme.head())
}

fn head<'a>(text: &str, area: Rect, theme: Theme) -> Line<'a> {
    Line::styled(format!("{text:<0$}", usize::from(area.width)), theme.head())
}

/// What it does that makes it leave, with the share of all its attempts.
fn causes(frame: &mut Frame<'_>, area: Rect, task: &Task, theme: Theme) {
    let total: u64 = task.causes.iter().map(|cause| cause.attempts).sum();
    let right = |text: String| Line::from(text).right_aligned();
    let numbers = [8, 6, 9];
    let used: u16 = numbers.iter().map(|width| width + 1).sum();
    let room = usize::from(area.width.saturating_sub(used));
    let rows = task.causes.iter().map(|cause| {
        Row::new([
            Line::from(fitting(&cause.cause, room).to_owned()),
            right(count(cause.attempts as f64)),
            right(percent(100.0 * cause.attempts as f64 / total.max(1) as f64)),
            right(count(cause.evictions as f64)),
        ])
    });
    let widths = [Constraint::Fill(1)].into_iter().chain(numbers.map(Constraint::Length));
    let titles = ["cause", "attempts", "share%", "evictions"].map(|title| match title {
        "cause" => Line::from(title),
        _ => Line::from(title).right_aligned(),
    });
    let table = Table::new(rows, widths).header(Row::new(titles).style(theme.head()));
    frame.render_widget(table, area);
    if task.causes.is_empty() && area.height > 1 {
        let none = Line::styled("no attempt since it is watched", theme.dim());
        frame.render_widget(none, Rect { y: area.y + 1, height: 1, ..area });
    }
}

/// A cause in `room` cells: where it does not fit, the name of a call says more than that it is one.
fn fitting(cause: &str, room: usize) -> &str {
    if cause.chars().count() > room { cause.strip_prefix("call ").unwrap_or(cause) } else { cause }
}

/// What the prediction rests on, then what it got.
fn figures(task: &Task, store: &Store) -> Vec<Line<'static>> {
    let (metrics, past) = (&task.metrics, &task.history);
    let since = match past.last_ns {
        0 => "none is known".to_owned(),
        last_ns => format!("{} ago", time_ns(task.read_ns.saturating_sub(last_ns))),
    };
    let policy = |name: &str| {
        let value = store.shown.begin.policy.get(name);
        value.map_or("-", |value| value.as_str()).to_owned()
    };
    let calm = if metrics.calm == 1 { "yes" } else { "no" };
    let pairs = [
        ("calm", format!("{calm}, by rule {}", policy("predict"))),
        ("last attempt", format!("{since}, ran {} since", time_ns(past.quiet_run_ns))),
        (
            "period P",
            format!("{}, own run {}", time_ns(past.period_ns), time_ns(past.period_run_ns)),
        ),
        (
            "least run",
            format!(
                "{}; right {}, wasted {}",
                time_ns(past.least_run_ns),
                metrics.hits,
                metrics.misses
            ),
        ),
        ("C, K", format!("{}, {}", policy("predict-c-us"), policy("predict-k"))),
        (
            "waits",
            format!(
                "p50 {}, p99 {}, max {}",
                time(metrics.wait_p50_us),
                time(metrics.wait_p99_us),
                time(metrics.wait_max_us)
            ),
        ),
        ("longest after", metrics.wait_max_after.clone()),
        (
            "cpu%",
            format!("{}, on RT CPUs {}", percent(metrics.cpu_pct), percent(metrics.on_rt_pct)),
        ),
        ("ran", format!("{:.1} s, {} runs watched", metrics.run_s, count(metrics.runs as f64))),
        ("moves to RT", metrics.moves_rt.to_string()),
        ("weight", metrics.weight.to_string()),
    ];
    let line = |(name, value): (&str, String)| {
        Line::from(vec![Span::styled(format!("{name:<14}"), store.theme.dim()), Span::from(value)])
    };
    pairs.into_iter().filter(|(_, value)| !value.is_empty()).map(line).collect()
}

/// Its last intervals, figure by figure.
fn histories(frame: &mut Frame<'_>, area: Rect, task: &Task, theme: Theme) {
    type Figure = (&'static str, fn(&Point) -> f64, fn(f64) -> String);
    let shown: [Figure; 4] = [
        ("cpu%", |point| point.cpu_pct, percent),
        ("attempts/s", |point| point.attempts_per_s, count),
        ("evictions/s", |point| point.evictions_per_s, count),
        ("wait p99", |point| point.wait_p99_us, time),
    ];
    let with_title = area.height > 3;
    let title = format!("the last {} intervals", task.points.len());
    if with_title {
        frame.render_widget(head(&title, area, theme), Rect { height: 1, ..area });
    }
    let rows = area.rows().skip(usize::from(with_title));
    for (row, (name, figure, write)) in rows.zip(shown) {
        let widths = [Constraint::Length(12), Constraint::Length(10), Constraint::Min(0)];
        let [label, most, bars] = Layout::horizontal(widths).areas(row);
        let peak = task.points.iter().map(figure).fold(0.0, f64::max);
        frame.render_widget(Line::styled(name, theme.dim()), label);
        frame.render_widget(Line::from(format!("to {}", write(peak))), most);
        history(frame, bars, task, theme, figure);
    }
}

/// The CPUs of its last intervals.
fn strip_cpus(task: &Task) -> Vec<u64> {
    let mut cpus: Vec<_> = task.points.iter().map(|point| point.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Where it was at the end of each interval: a row for each CPU, the newest on the right.
fn placement_strip(frame: &mut Frame<'_>, area: Rect, task: &Task, cpus: &[u64], store: &Store) {
    let theme = store.theme;
    let label = 10;
    let room = usize::from(area.width.saturating_sub(label));
    let skipped = task.points.len().saturating_sub(room);
    let indent = " ".repeat(room.saturating_sub(task.points.len()));
    let rows = usize::from(area.height.saturating_sub(1));
    let hidden = cpus.len().saturating_sub(rows);
    let more = if hidden > 0 { format!(" (and {hidden} more CPUs)") } else { String::new() };
    let title = format!("where it was: █ ran on an RT CPU, ▒ on another, · did not run{more}");
    let mut text = Text::from(head(&title, area, theme));
    for cpu in cpus.iter().take(rows) {
        let kind = store.shown.machine.cpus.get(&(*cpu as usize));
        let rt = kind.is_some_and(|cpu| cpu.is_rt == 1);
        let kind = kind.map_or("", |cpu| cpu.kind.as_str());
        let mark = |point: &Point| match (point.cpu == *cpu, point.cpu_pct > 0.0) {
            (false, _) => " ",
            (true, false) => "·",
            (true, true) if rt => "█",
            (true, true) => "▒",
        };
        let marks: String = task.points.iter().skip(skipped).map(mark).collect();
        let label = format!("CPU {cpu} {kind}");
        text.push_line(Line::from(vec![
            Span::from(format!("{label:<10}{indent}")),
            Span::styled(marks, if rt { theme.rt() } else { theme.ext() }),
        ]));
    }
    frame.render_widget(text, area);
}
