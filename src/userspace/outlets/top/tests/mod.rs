// SPDX-License-Identifier: GPL-2.0-only
//! What is drawn.

mod fixture;
mod keys;
mod mouse;

use std::collections::HashSet;
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Rect;
use ratatui::style::Color;

use super::draw::draw;
use super::event::{Ended, Event};
use super::store::{Flow, Store, Wish};
use super::{Theme, sample};
use crate::model::{COUNTERS, CpuMetrics, Snapshot};

/// A store and the screen that it is drawn on.
struct View {
    store: Store,
    terminal: Terminal<TestBackend>,
}

impl View {
    fn new(width: u16, height: u16) -> Self {
        Self::with(width, height, Wish::default(), sample::snapshot())
    }

    fn with(width: u16, height: u16, wish: Wish, snapshot: Snapshot) -> Self {
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        let mut view = Self { store: Store::new(wish), terminal };
        view.does(Event::Snapshot(Arc::new(snapshot)));
        view
    }

    /// Lets something happen, and draws.
    fn does(&mut self, event: Event) -> Flow {
        let flow = self.store.handle(event);
        let mut areas = None;
        self.terminal.draw(|frame| areas = Some(draw(frame, &self.store))).expect("drawn");
        self.store.drawn(areas.expect("areas"));
        flow
    }

    fn key(&mut self, code: KeyCode) -> Flow {
        self.does(Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn types(&mut self, text: &str) {
        for letter in text.chars() {
            self.key(KeyCode::Char(letter));
        }
    }

    fn mouse(&mut self, kind: MouseEventKind, at: (u16, u16)) {
        let modifiers = KeyModifiers::NONE;
        self.does(Event::Mouse(MouseEvent { kind, column: at.0, row: at.1, modifiers }));
    }

    fn click(&mut self, at: (u16, u16)) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), at);
    }

    fn buffer(&self) -> &Buffer {
        self.terminal.backend().buffer()
    }

    /// What is on the screen, in letters.
    fn text(&self) -> String {
        let area: Rect = self.buffer().area;
        let row = |y| {
            let cells = (0..area.width).map(|x| self.buffer()[(x, y)].symbol());
            cells.collect::<String>().trim_end().to_owned()
        };
        (0..area.height).map(row).collect::<Vec<_>>().join("\n")
    }

    fn row_of(&self, text: &str) -> u16 {
        let at = self.text().lines().position(|line| line.contains(text));
        at.unwrap_or_else(|| panic!("no {text} in\n{}", self.text())) as u16
    }

    fn pids(&self) -> Vec<u64> {
        self.store.rows().iter().map(|task| task.metrics.pid).collect()
    }
}

#[test]
fn the_tasks_at_80x24() {
    insta::assert_snapshot!(View::new(80, 24).text());
}

#[test]
fn the_tasks_at_200x60() {
    insta::assert_snapshot!(View::new(200, 60).text());
}

#[test]
fn a_task_at_80x24() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Enter);
    insta::assert_snapshot!(view.text());
}

#[test]
fn a_task_at_200x60() {
    let mut view = View::new(200, 60);
    view.key(KeyCode::Enter);
    insta::assert_snapshot!(view.text());
}

#[test]
fn the_log_at_80x24() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Char('e'));
    insta::assert_snapshot!(view.text());
}

#[test]
fn the_totals_show_every_counter() {
    let mut view = View::new(80, 72);
    view.key(KeyCode::Char('t'));
    for counter in &COUNTERS {
        let title = counter.title;
        assert!(view.text().lines().any(|line| line.contains(title)), "{title}: {}", view.text());
    }
    insta::assert_snapshot!(view.text());
}

#[test]
fn the_help_at_200x60() {
    let mut view = View::new(200, 60);
    view.key(KeyCode::Char('?'));
    insta::assert_snapshot!(view.text());
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    insta::assert_snapshot!(View::new(30, 6).text());
    for (width, height) in [(1, 1), (5, 2), (59, 100), (200, 15)] {
        let mut view = View::new(width, height);
        for letter in "?e c".chars() {
            view.key(KeyCode::Char(letter));
        }
        assert_eq!(view.key(KeyCode::Char('q')), Flow::Leave);
    }
}

#[test]
fn no_size_and_no_snapshot_make_it_panic() {
    let mut crowded = sample::snapshot();
    let cpu = crowded.machine.cpus[&2].clone();
    crowded.machine.cpus.extend((4..300).map(|id| (id, cpu.clone())));
    for snapshot in [Snapshot::default(), sample::snapshot(), crowded] {
        for width in [60, 80, 150, 333] {
            for height in [16, 24, 40, 120] {
                let mut view = View::with(width, height, Wish::default(), snapshot.clone());
                for code in ["Enter", "?", "e", "?", "c", "t"] {
                    let letter = code.chars().next().filter(|_| code.len() == 1);
                    view.key(letter.map_or(KeyCode::Enter, KeyCode::Char));
                }
            }
        }
    }
}

#[test]
fn a_body_on_an_rt_cpu_is_an_alarm() {
    let mut snapshot = sample::snapshot();
    assert!(!View::new(80, 24).text().contains("BODIES"));
    snapshot.machine.bodies_on_rt = 3;
    snapshot.machine.cpus.entry(2).or_default().body_cause = "call read".into();
    let view = View::with(80, 24, Wish::default(), snapshot);
    assert!(view.text().contains("3 BODIES ON RT  call read on CPU 2"), "{}", view.text());
    let row = view.row_of("BODIES");
    assert_eq!(view.buffer()[(2, row)].fg, Color::Red);
}

#[test]
fn lost_records_are_told() {
    let mut snapshot = sample::snapshot();
    assert!(!View::new(80, 24).text().contains("lost"));
    snapshot.lost.ring = 17;
    let view = View::with(80, 24, Wish::default(), snapshot);
    assert!(view.text().contains("lost 17 ring"), "{}", view.text());
}

#[test]
fn loose_real_time_tasks_are_told() {
    let mut snapshot = sample::snapshot();
    assert!(!View::new(80, 24).text().contains("loose"));
    snapshot.machine.loose_pct = 12.3;
    let view = View::with(80, 24, Wish::default(), snapshot);
    assert!(view.text().contains("loose RT tasks 12"), "{}", view.text());
}

#[test]
fn no_colour_where_none_is_wanted() {
    let wish = || Wish { theme: Theme::new(false), ..Wish::default() };
    let colors = |view: &View| -> HashSet<_> {
        view.buffer().content.iter().flat_map(|cell| [cell.fg, cell.bg]).collect()
    };
    let mut alarmed = sample::snapshot();
    (alarmed.machine.bodies_on_rt, alarmed.lost.feed) = (1, 1);
    for keys in ["", "?", "e", "c", "t", "\n"] {
        let mut view = View::with(200, 60, wish(), alarmed.clone());
        for key in keys.chars() {
            view.key(if key == '\n' { KeyCode::Enter } else { KeyCode::Char(key) });
        }
        assert_eq!(colors(&view), [Color::Reset].into(), "{keys:?}");
    }
    assert!(colors(&View::new(200, 60)).len() > 4);
}

#[test]
fn many_cpus_are_not_dropped_in_silence() {
    let mut snapshot = sample::snapshot();
    let nrt = CpuMetrics { kind: "NRT".into(), ..CpuMetrics::default() };
    snapshot.machine.cpus.extend((4..64).map(|id| (id, nrt.clone())));
    let mut view = View::with(80, 24, Wish::default(), snapshot);
    let text = view.text();
    assert!(text.contains("\n  2 RT ") && text.contains("\n  3 RT "), "{text}");
    assert!(text.contains("+58: press c"), "{text}");
    view.key(KeyCode::Char('c'));
    assert!(view.text().contains("\n  0 NRT") && !view.text().contains("\n 63 NRT"));
    view.key(KeyCode::End);
    assert!(view.text().contains("\n 63 NRT"), "{}", view.text());
}

#[test]
fn the_end_is_told_and_the_last_interval_stays() {
    let mut view = View::new(80, 24);
    view.does(Event::Ended(Ended::Recording));
    assert!(view.text().contains("end of the recording") && view.text().contains("hog"));
    view.does(Event::Ended(Ended::Scheduler));
    assert!(view.text().contains("the scheduler ended"), "{}", view.text());
}

#[test]
fn a_task_that_is_gone_is_still_shown() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Enter);
    let mut without = sample::snapshot();
    let pid = view.store.selected.expect("a task");
    without.tasks.remove(&pid);
    view.does(Event::Snapshot(Arc::new(without)));
    assert!(view.text().contains("gone: stress"), "{}", view.text());
}

#[test]
fn the_selection_stays_with_its_task() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Down);
    let before = view.store.selected;
    view.key(KeyCode::Char('r'));
    assert_eq!(view.store.selected, before);
}

#[test]
fn an_old_part_of_the_log_stays_in_sight() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Char('e'));
    view.key(KeyCode::PageUp);
    let first = view.text().lines().nth(4).expect("a line").to_owned();
    let mut later = sample::snapshot();
    let last = later.events.back().expect("an event").clone();
    later.events.extend([last.clone(), last]);
    later.nr_events += 2;
    view.does(Event::Snapshot(Arc::new(later)));
    assert_eq!(view.text().lines().nth(4), Some(first.as_str()));
}
