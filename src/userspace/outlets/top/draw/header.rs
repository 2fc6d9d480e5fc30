// SPDX-License-Identifier: GPL-2.0-only
//! The head: which scheduler, and whether it keeps its promise.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::event::Ended;
use super::super::store::Store;
use super::super::text::{clock, count, percent, time};

/// Three lines.
pub fn draw(frame: &mut Frame<'_>, area: Rect, store: &Store) {
    let [first, second, third] = [0, 1, 2].map(|row| Rect { y: area.y + row, height: 1, ..area });
    let state = state(store);
    let begin = &store.shown.begin;
    let name = format!("{} on Linux {}", begin.ops_name, begin.kernel);
    let name_area = Rect { width: area.width.saturating_sub(state.width() as u16 + 1), ..first };
    frame.render_widget(Line::styled(name, store.theme.strong()), name_area);
    frame.render_widget(state.right_aligned(), first);
    frame.render_widget(machine(store), second);
    frame.render_widget(promise(store), third);
}

/// What is unusual about the view itself, what it lacks above all.
fn state(store: &Store) -> Line<'_> {
    let theme = store.theme;
    let mut line = Line::default();
    let mut push = |text: String, style| {
        if !line.spans.is_empty() {
            line.push_span(" ");
        }
        line.push_span(Span::styled(text, style));
    };
    let lost = store.shown.lost;
    let lost = [("ring", lost.ring), ("budget", lost.over_budget), ("feed", lost.feed)];
    for (at, number) in lost.into_iter().filter(|(_, number)| *number > 0) {
        push(format!("lost {} {at}", count(number as f64)), theme.warn());
    }
    let loose_pct = store.shown.machine.loose_pct;
    if loose_pct > 0.0 {
        push(format!("loose RT tasks {}", percent(loose_pct)), theme.warn());
    }
    if store.frozen {
        push(" FROZEN ".into(), theme.head());
    }
    if let Some(speed) = store.replay {
        push(format!("replay x{speed}"), theme.key());
    }
    match &store.ended {
        None if !store.has_begun() => push("waiting for the first interval".into(), theme.dim()),
        None => {}
        Some(Ended::Recording) => push("end of the recording".into(), theme.warn()),
        Some(Ended::Scheduler) => push("the scheduler ended".into(), theme.alarm()),
        Some(Ended::Broken(why)) => push(why.clone(), theme.alarm()),
    }
    line
}

fn machine(store: &Store) -> Line<'_> {
    let (begin, machine) = (&store.shown.begin, &store.shown.machine);
    Line::from(format!(
        "RT {}  NRT {}  preempt {}  up {}  attempts {}/s  evictions {}/s",
        begin.rt_cpus,
        begin.nrt_cpus,
        begin.preemption,
        clock(machine.uptime_s),
        count(machine.attempts_per_s.round()),
        count(machine.evictions_per_s.round()),
    ))
}

/// Nothing of the kernel but RT0's on RT CPUs, and how fast the others leave.
fn promise(store: &Store) -> Line<'_> {
    let (theme, machine) = (store.theme, &store.shown.machine);
    let mut line = Line::default();
    if machine.bodies_on_rt > 0 {
        let text = format!(" {} BODIES ON RT ", count(machine.bodies_on_rt as f64));
        line.push_span(Span::styled(text, theme.alarm()));
        line.push_span(format!(" {}", machine.body_causes()));
    } else {
        line.push_span("bodies on RT 0");
    }
    line.push_span(format!(
        "  residence worst {} p99 {}  eviction p50 {} p99 {}",
        time(machine.residence_max_us),
        time(machine.residence_p99_us),
        time(machine.arrival_p50_us),
        time(machine.arrival_p99_us),
    ));
    line
}
