// SPDX-License-Identifier: GPL-2.0-only
//! The live table: a pure rendering, and a screen that draws it in place.

use std::env;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};

use crate::model::{COUNTERS, Counter, CpuMetrics, Group, Metrics};

/// What does not change while the scheduler runs: the head of the table.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// Name of the scheduler as the kernel shows it.
    pub ops_name: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Its preemption model.
    pub preemption: String,
    /// The RT CPUs as a list.
    pub rt_cpus: String,
    /// The NRT CPUs as a list.
    pub nrt_cpus: String,
}

/// How to render.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// May the text carry colour?
    pub color: bool,
    /// Lines that fit on the screen; CPUs beyond it are left out, aloud.
    pub lines: usize,
}

const WIDTH: usize = 80;
const RUNNING_WIDTH: usize = 17;
const ALARM: &str = "\x1b[1;31m";
const STRONG: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// Renders the whole table; every line ends with a line feed.
pub fn render(head: &Head, metrics: &Metrics, style: Style) -> String {
    let totals = totals(metrics, style);
    let mut text = String::new();
    line(&mut text, &format!("{} on Linux {}", head.ops_name, head.kernel));
    line(
        &mut text,
        &format!(
            "RT CPUs {}  NRT CPUs {}  preemption {}  up {}",
            head.rt_cpus,
            head.nrt_cpus,
            head.preemption,
            duration(metrics.uptime_s)
        ),
    );
    line(&mut text, "");
    let titles = format!(
        "{:>3} {:<3} {:>5} {:>5} {:>5} {:<17} {:>6} {:>6} {:>4} {:>6} {:>6} {:>2}",
        "CPU",
        "set",
        "RT%",
        "ext%",
        "load",
        "running",
        "att/s",
        "evic/s",
        "body",
        "us/s",
        "worst",
        "q"
    );
    line(&mut text, &paint(&titles, STRONG, style));
    // two of the head, two of the titles, the totals, and one for the cursor
    let room = style.lines.saturating_sub(5 + totals.lines().count()).max(1);
    for (id, cpu) in rows(metrics, room) {
        line(&mut text, &cpu_row(id, cpu, style));
    }
    let hidden = metrics.cpus.len().saturating_sub(room);
    if hidden > 0 {
        line(&mut text, &format!("    … and {hidden} more CPUs: this screen is too low for them"));
    }
    text + &totals
}

/// The CPUs to show: RT CPUs first when not all fit.
fn rows(metrics: &Metrics, room: usize) -> Vec<(usize, &CpuMetrics)> {
    let mut rows: Vec<_> = metrics.cpus.iter().map(|(id, cpu)| (*id, cpu)).collect();
    if rows.len() > room {
        rows.sort_by_key(|(id, cpu)| (cpu.is_rt == 0, *id));
        rows.truncate(room);
    }
    rows
}

fn cpu_row(id: usize, cpu: &CpuMetrics, style: Style) -> String {
    let rt_only = |text: String| if cpu.is_rt == 1 { text } else { "-".to_owned() };
    let body = rt_only(count(cpu.bodies_on_rt));
    let row = format!(
        "{id:>3} {:<3} {:>5.1} {:>5.1} {:>5.1} {:<17} {:>6} {:>6} ",
        cpu.kind,
        cpu.rt_pct,
        cpu.ext_pct,
        cpu.load,
        running(cpu),
        count(cpu.attempts_per_s.round() as u64),
        rt_only(count(cpu.evictions_per_s.round() as u64)),
    );
    let rest = format!(
        " {:>6} {:>6} {:>2}",
        rt_only(count(cpu.residence_us_per_s.round() as u64)),
        rt_only(count(cpu.residence_max_us.round() as u64)),
        count(cpu.queued),
    );
    let body = format!("{body:>4}");
    row + &if cpu.bodies_on_rt > 0 { paint(&body, ALARM, style) } else { body } + &rest
}

/// `comm/pid`, with a star when it is a real-time task; at most RUNNING_WIDTH characters.
fn running(cpu: &CpuMetrics) -> String {
    if cpu.running_pid == 0 {
        return "-".to_owned();
    }
    let tail = format!("/{}{}", cpu.running_pid, if cpu.running_rt == 1 { "*" } else { "" });
    let comm: String =
        cpu.running_comm.chars().take(RUNNING_WIDTH.saturating_sub(tail.len())).collect();
    comm + &tail
}

/// The totals since the begin, a paragraph for each group of counters.
fn totals(metrics: &Metrics, style: Style) -> String {
    let mut text = String::from("\n");
    for (group, title) in [
        (Group::Attempts, "attempts"),
        (Group::Placed, "placed"),
        (Group::Moved, "moved"),
        (Group::Handed, "handed"),
        (Group::Predicted, "predicted"),
        (Group::Exempt, "exempt"),
    ] {
        let mut row = format!("{title:<9}");
        for counter in COUNTERS.iter().filter(|counter| counter.group == group) {
            let item = format!(" {} {} ", counter.title, total(metrics, counter));
            let item = match counter.name {
                "wasted" if metrics.moved_rt > 0 => {
                    format!("{item}({:.1} %) ", metrics.wasted_pct)
                }
                _ => item,
            };
            if row.chars().count() + item.trim_end().chars().count() > WIDTH {
                line(&mut text, &row);
                row = " ".repeat(9);
            }
            row += &item;
        }
        line(&mut text, &row);
    }
    if metrics.bodies_on_rt > 0 {
        let alarm = format!(
            "! {} endangering calls ran on RT CPUs (must be 0): is the preemption model full or lazy?",
            metrics.bodies_on_rt
        );
        line(&mut text, &paint(&alarm, ALARM, style));
    }
    text
}

fn total(metrics: &Metrics, counter: &Counter) -> String {
    count(metrics.counter(counter))
}

/// A number in at most six characters: 99999, 1234k, 56M.
fn count(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..10_000_000 => format!("{}k", number / 1_000),
        10_000_000..10_000_000_000 => format!("{}M", number / 1_000_000),
        _ => format!("{}G", number / 1_000_000_000),
    }
}

fn duration(secs: f64) -> String {
    let secs = secs as u64;
    format!("{}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
}

fn paint(text: &str, ansi: &str, style: Style) -> String {
    if style.color { format!("{ansi}{text}{PLAIN}") } else { text.to_owned() }
}

fn line(text: &mut String, row: &str) {
    // writing into a String cannot fail
    let _ = writeln!(text, "{}", row.trim_end());
}

/// A terminal on stdout on which the table is drawn in place; on a dumb one
/// (`TERM=dumb`) each table follows the one before.
///
/// It changes no terminal mode and hides nothing, so there is nothing to give
/// back however the program ends: the cursor stands below the table.
#[derive(Debug)]
pub struct Screen {
    dumb: bool,
    drawn: bool,
}

impl Screen {
    /// The screen, if stdout is a terminal.
    pub fn on_stdout() -> Option<Self> {
        let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
        io::stdout().is_terminal().then_some(Self { dumb, drawn: false })
    }

    /// How to render for it: no colour if `NO_COLOR` is set and not empty.
    pub fn style(&self) -> Style {
        let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let lines = terminal_size::terminal_size().map_or(24, |(_, height)| usize::from(height.0));
        Style { color: !self.dumb && !no_color, lines }
    }

    /// Replaces what is on the screen.
    ///
    /// # Errors
    /// When stdout cannot be written to.
    pub fn draw(&mut self, text: &str) -> io::Result<()> {
        let frame = if self.dumb { format!("{text}\n") } else { in_place(text, !self.drawn) };
        self.drawn = true;
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

/// `text` with what it takes to overwrite the frame before without flicker.
fn in_place(text: &str, first: bool) -> String {
    let mut frame = String::from(if first { "\x1b[2J\x1b[H" } else { "\x1b[H" });
    for row in text.lines() {
        frame += row;
        frame += "\x1b[K\n";
    }
    frame + "\x1b[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        Head {
            ops_name: "artis_0.1.0_x86_64_unknown_linux_gnu".into(),
            kernel: "6.18.15+deb13-cloud-amd64".into(),
            preemption: "lazy".into(),
            rt_cpus: "2-3".into(),
            nrt_cpus: "0-1".into(),
        }
    }

    fn metrics() -> Metrics {
        let nrt = CpuMetrics {
            kind: "NRT".into(),
            ext_pct: 99.96,
            load: 2.5,
            attempts_per_s: 123_456.7,
            queued: 3,
            running_pid: 1_234_567,
            running_comm: "stress-ng-sysinfo".into(),
            ..CpuMetrics::default()
        };
        let rt = CpuMetrics {
            kind: "RT".into(),
            is_rt: 1,
            rt_pct: 74.9,
            ext_pct: 25.0,
            load: 4.0,
            attempts_per_s: 430.0,
            evictions_per_s: 430.0,
            residence_us_per_s: 812.0,
            residence_max_us: 44.2,
            running_pid: 99,
            running_comm: "cyclictest".into(),
            running_rt: 1,
            ..CpuMetrics::default()
        };
        let idle = CpuMetrics { kind: "RT".into(), is_rt: 1, ..CpuMetrics::default() };
        Metrics {
            uptime_s: 3_723.4,
            attempts_call: 12_345_678,
            evictions: 99_999,
            place_nrt_queue: 250_000,
            handed_over: 98_765,
            moved_rt: 5_000,
            wasted: 60,
            wasted_pct: 1.2,
            cpus: [(0, nrt.clone()), (1, nrt), (2, rt), (3, idle)].into(),
            ..Metrics::default()
        }
    }

    const NO_COLOR: Style = Style { color: false, lines: 24 };

    #[test]
    fn looks_like_this() {
        insta::assert_snapshot!(render(&head(), &metrics(), NO_COLOR));
    }

    #[test]
    fn fits_80_columns() {
        let mut metrics = metrics();
        for cpu in metrics.cpus.values_mut() {
            (cpu.rt_pct, cpu.ext_pct, cpu.load) = (100.0, 100.0, 999.9);
            (cpu.evictions_per_s, cpu.residence_us_per_s, cpu.residence_max_us) = (1e6, 1e6, 1e6);
            cpu.queued = 99;
        }
        for row in render(&head(), &metrics, NO_COLOR).lines() {
            assert!(row.chars().count() <= WIDTH, "{row}");
        }
    }

    #[test]
    fn a_body_on_an_rt_cpu_is_an_alarm() {
        let mut metrics = metrics();
        metrics.bodies_on_rt = 2;
        metrics.cpus.get_mut(&2).expect("CPU 2").bodies_on_rt = 2;
        let plain = render(&head(), &metrics, NO_COLOR);
        assert!(plain.contains("! 2 endangering calls"), "{plain}");
        assert!(!plain.contains('\x1b'));
        let colored = render(&head(), &metrics, Style { color: true, ..NO_COLOR });
        assert!(colored.contains("\x1b[1;31m   2\x1b[0m"), "{colored}");
    }

    #[test]
    fn a_frame_leaves_nothing_of_the_one_before() {
        assert_eq!(in_place("a\nb\n", true), "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        assert_eq!(in_place("a\n", false), "\x1b[Ha\x1b[K\n\x1b[J");
    }

    #[test]
    fn a_low_screen_keeps_the_rt_cpus() {
        let mut metrics = metrics();
        let nrt = metrics.cpus[&0].clone();
        metrics.cpus.extend((4..64).map(|id| (id, nrt.clone())));
        let text = render(&head(), &metrics, NO_COLOR);
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.contains("\n  2 RT ") && text.contains("\n  3 RT "), "{text}");
        assert!(text.contains("more CPUs"), "{text}");
    }
}
