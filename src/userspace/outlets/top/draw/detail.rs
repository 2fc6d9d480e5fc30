// SPDX-License-Identifier: GPL-2.0-only
//! All about one task.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};

use super::super::store::Store;
use super::super::text::{count, percent, time, time_ns};
use super::super::{Theme, why};
use super::rt0::history;
use crate::model::{Point, Task};

/// The page of a task.
pub fn draw(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let Some(task) = &store.detail else { return };
    let cpus = strip_cpus(task);
    let strip = (cpus.len() as u16 + 1).min(area.height / 4).max(2);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(3),
        Constraint::Fill(2),
        Constraint::Length(5),
        Constraint::Length(strip),
        Constraint::Fill(1),
    ];
    let [title, why_area, middle, past, strip, placed] = Layout::vertical(parts).areas(area);
    frame.render_widget(headline(task, store, area.width), title);
    let why = Paragraph::new(why::sentences(task, &store.shown)).wrap(Wrap { trim: true });
    frame.render_widget(why, why_area);
    let halves = [Constraint::Fill(1), Constraint::Length(1), Constraint::Fill(1)];
    let [left, _, right] = Layout::horizontal(halves).areas(middle);
    causes(frame, left, task, store.theme);
    figures(frame, right, task, store);
    histories(frame, past, task, store.theme);
    placement_strip(frame, strip, task, &cpus, store);
    last_placements(frame, placed, task, store);
}

fn headline(task: &Task, store: &Store, width: u16) -> Line<'static> {
    let metrics = &task.metrics;
    let prio = match metrics.rt_prio {
        0 => format!("nice {}", metrics.nice),
        prio => format!("priority {prio}"),
    };
    let gone = store.shown.tasks.get(&metrics.pid).is_none();
    let gone = if gone { "  it is not there any more" } else { "" };
    let text = format!(
        "{}/{} of process {}  class {}  {} {prio}  {} CPUs allowed{gone}",
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
    let rows = task.causes.iter().map(|cause| {
        Row::new([
            Line::from(cause.cause.clone()),
            right(count(cause.attempts as f64)),
            right(percent(100.0 * cause.attempts as f64 / total.max(1) as f64)),
            right(count(cause.evictions as f64)),
        ])
    });
    let widths =
        [Constraint::Fill(1), Constraint::Length(8), Constraint::Length(6), Constraint::Length(9)];
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

/// What the prediction rests on, then what it got.
fn figures(frame: &mut Frame<'_>, area: Rect, task: &Task, store: &Store) {
    let (metrics, past) = (&task.metrics, &task.history);
    let since = task.read_ns.saturating_sub(past.last_ns);
    let since = if past.last_ns == 0 { "-".to_owned() } else { time_ns(since) };
    let policy = |name: &str| {
        let value = store.shown.begin.policy.get(name);
        value.map_or("-", |value| value.as_str()).to_owned()
    };
    let calm = if metrics.calm == 1 { "yes" } else { "no" };
    let pairs = [
        ("calm", format!("{calm}, by rule {}", policy("predict"))),
        ("last attempt", format!("{since} ago, ran {} since", time_ns(past.quiet_run_ns))),
        (
            "between two (P)",
            format!("{}, {} of own run", time_ns(past.period_ns), time_ns(past.period_run_ns)),
        ),
        ("least run", time_ns(past.least_run_ns)),
        ("C, K", format!("{}, {}", policy("predict-c-us"), policy("predict-k"))),
        ("right, wasted", format!("{}, {}", metrics.hits, metrics.misses)),
        (
            "wait p50 p99 max",
            [metrics.wait_p50_us, metrics.wait_p99_us, metrics.wait_max_us].map(time).join("  "),
        ),
        ("longest wait after", metrics.wait_max_after.clone()),
        ("cpu%, on RT", format!("{}, {}", percent(metrics.cpu_pct), percent(metrics.on_rt_pct))),
        ("run time, runs", format!("{:.1} s, {}", metrics.run_s, count(metrics.runs as f64))),
        ("returns, pushes", format!("{}, {}", metrics.moves_rt, metrics.pushes)),
    ];
    let mut text = Text::from(head("prediction and figures", area, store.theme));
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        text.push_line(Line::from(vec![
            Span::styled(format!("{name:<19}"), store.theme.dim()),
            Span::from(value),
        ]));
    }
    frame.render_widget(text, area);
}

/// Its last intervals, figure by figure.
fn histories(frame: &mut Frame<'_>, area: Rect, task: &Task, theme: Theme) {
    type Figure = fn(&Point) -> f64;
    let shown: [(&str, Figure, fn(f64) -> String); 4] = [
        ("cpu%", |point| point.cpu_pct, percent),
        ("attempts/s", |point| point.attempts_per_s, count),
        ("evictions/s", |point| point.evictions_per_s, count),
        ("wait p99", |point| point.wait_p99_us, time),
    ];
    let title = format!("the last {} intervals", task.points.len());
    frame.render_widget(head(&title, area, theme), Rect { height: 1, ..area });
    for (at, (name, figure, write)) in shown.into_iter().enumerate() {
        let row = Rect { y: area.y + 1 + at as u16, height: 1, ..area };
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

/// The last moves, the newest first.
fn last_placements(frame: &mut Frame<'_>, area: Rect, task: &Task, store: &Store) {
    let mut text = Text::from(head("last placements", area, store.theme));
    for placed in task.placed.iter().rev() {
        let ago = (store.shown.machine.uptime_s - placed.at_s).max(0.0);
        let at = format!("{:>6} ago  CPU {:<3}", time(ago * 1e6), placed.cpu);
        text.push_line(Line::from(vec![
            Span::styled(at, store.theme.dim()),
            Span::from(format!(" {}", why::reason(&placed.why))),
        ]));
    }
    frame.render_widget(text, area);
}
