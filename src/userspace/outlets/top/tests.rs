// SPDX-License-Identifier: GPL-2.0-only
//! What is drawn, and that each key does what the help says.

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
use super::keys::{Action, KEYS, When};
use super::store::{Flow, Page, Store, Wish};
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
    let mut view = View::new(80, 60);
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
        for width in [60, 61, 79, 80, 149, 150, 333] {
            for height in [16, 17, 24, 39, 40, 120] {
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
    let view = View::with(80, 24, Wish::default(), snapshot);
    assert!(view.text().contains("3 BODIES ON RT"), "{}", view.text());
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
fn the_mouse_does_what_the_help_says() {
    let mut view = View::new(80, 24);
    let hog = (9, view.row_of(" hog  "));
    view.click(hog);
    assert_eq!(view.store.selected, Some(1200));
    view.click(hog);
    assert_eq!(view.store.page, Page::Detail);
    view.key(KeyCode::Esc);

    let title = view.store.areas.titles[1];
    view.click((title.0.x, title.0.y));
    assert_eq!((view.store.order.field, view.store.order.descending), (title.1, false));
    view.click((title.0.x, title.0.y));
    assert!(view.store.order.descending);

    let hard = (3, view.row_of("  901"));
    view.click(hard);
    assert_eq!((view.store.selected, view.store.page), (Some(901), Page::Tasks));
    view.click(hard);
    assert_eq!(view.store.page, Page::Detail);
    view.key(KeyCode::Esc);

    view.key(KeyCode::Home);
    view.mouse(MouseEventKind::ScrollDown, hog);
    assert_eq!(view.store.selected_row(), Some(3));
    view.mouse(MouseEventKind::ScrollUp, hog);
    assert_eq!(view.store.selected_row(), Some(0));
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

/// Each binding is tried with each of its keys: what its action is to do is seen to be done.
#[test]
fn every_key_does_what_the_help_says() {
    let mut tried = HashSet::new();
    for binding in KEYS {
        for (code, modifiers) in binding.keys {
            let wish = Wish { replay: Some(1.0), ..Wish::default() };
            let mut many = sample::snapshot();
            for pid in 8_000..8_100 {
                let mut task = (*many.tasks[&20]).clone();
                task.metrics.pid = pid;
                many.tasks.insert(pid, Arc::new(task));
            }
            let mut view = View::with(80, 24, wish, many);
            if binding.when == When::Typing {
                view.types("/hog");
            }
            let key = Event::Key(KeyEvent::new(*code, *modifiers));
            does_it(&mut view, binding.action, key);
            tried.insert((binding.when == When::Typing, binding.action));
        }
    }
    assert_eq!(tried.len(), KEYS.len(), "two bindings with one action at one place");
}

fn does_it(view: &mut View, action: Action, key: Event) {
    let press = |view: &mut View| view.does(key.clone());
    match action {
        Action::Leave => assert_eq!(press(view), Flow::Leave),
        Action::Stop => assert_eq!(press(view), Flow::StopJob),
        Action::Redraw => assert_eq!(press(view), Flow::Redraw),
        Action::Help => {
            press(view);
            assert!(view.text().contains("show or hide this help"), "{}", view.text());
            press(view);
            assert!(!view.text().contains("show or hide this help"), "{}", view.text());
        }
        Action::Open => {
            press(view);
            assert!(view.text().contains("stress-ng-sysinf/1300 of process"), "{}", view.text());
        }
        Action::Back => {
            for open in ['?', 'e', 'c', 't'] {
                view.key(KeyCode::Char(open));
                press(view);
                assert!(!view.store.help && view.store.page == Page::Tasks, "{open}");
            }
            view.key(KeyCode::Enter);
            press(view);
            assert_eq!(view.store.page, Page::Tasks);
            view.types("/hog");
            view.key(KeyCode::Enter);
            assert_eq!(view.pids(), [1200]);
            press(view);
            assert!(view.pids().len() > 1);
        }
        Action::Pause => {
            press(view);
            let mut later = sample::snapshot();
            later.machine.uptime_s = 7_384.0;
            view.does(Event::Snapshot(Arc::new(later)));
            assert!(view.text().contains("FROZEN") && !view.text().contains("up 2:03:04"));
            press(view);
            assert!(!view.text().contains("FROZEN") && view.text().contains("up 2:03:04"));
        }
        Action::Filter => {
            press(view);
            view.types("hog");
            assert!(view.text().contains("filter: hog"), "{}", view.text());
            assert_eq!(view.pids(), [1200]);
        }
        Action::SortNext | Action::SortPrevious => {
            let titles: Vec<_> = view.store.areas.titles.iter().map(|(_, field)| *field).collect();
            let at = titles.iter().position(|field| *field == view.store.order.field);
            let by = if action == Action::SortNext { 1 } else { titles.len() - 1 };
            press(view);
            let wanted = titles[(at.expect("in sight") + by) % titles.len()];
            assert_eq!(view.store.order.field, wanted);
        }
        Action::Reverse => {
            let first = view.pids()[0];
            press(view);
            assert_ne!(view.pids()[0], first);
        }
        Action::Log | Action::Cpus | Action::Totals => {
            let page = match action {
                Action::Log => Page::Log,
                Action::Cpus => Page::Cpus,
                _ => Page::Totals,
            };
            press(view);
            assert_eq!(view.store.page, page);
            press(view);
            assert_eq!(view.store.page, Page::Tasks);
        }
        Action::Down | Action::PageDown | Action::Last => {
            let rows = view.store.areas.page_rows;
            press(view);
            let row = view.store.selected_row().expect("a row");
            let last = view.pids().len() - 1;
            let wanted = if action == Action::Last { last } else { rows - 1 };
            assert_eq!(row, if action == Action::Down { 1 } else { wanted });
        }
        Action::Up | Action::PageUp | Action::First => {
            view.key(KeyCode::End);
            let (rows, last) = (view.store.areas.page_rows, view.pids().len() - 1);
            press(view);
            let row = view.store.selected_row().expect("a row");
            let wanted = if action == Action::First { 0 } else { last + 1 - rows };
            assert_eq!(row, if action == Action::Up { last - 1 } else { wanted });
        }
        Action::Right | Action::Left => {
            assert!(view.text().contains("class"));
            view.key(KeyCode::Right);
            if action == Action::Left {
                view.key(KeyCode::Right);
                press(view);
            } else {
                press(view);
            }
            let wanted = if action == Action::Left { 1 } else { 2 };
            assert_eq!(view.store.skipped, wanted);
            assert!(!view.text().contains("class"), "{}", view.text());
        }
        Action::Faster => {
            press(view);
            assert!(view.text().contains("replay x2"), "{}", view.text());
        }
        Action::Slower => {
            press(view);
            assert!(view.text().contains("replay x0.5"), "{}", view.text());
        }
        Action::Keep => {
            press(view);
            assert_eq!((view.store.typing, view.pids()), (false, vec![1200]));
        }
        Action::Drop => {
            press(view);
            assert!(!view.store.typing && view.pids().len() > 1);
        }
        Action::Erase => {
            press(view);
            assert!(view.text().contains("filter: ho_"), "{}", view.text());
        }
        Action::Clear => {
            press(view);
            assert!(view.store.typing && view.text().contains("filter: _"), "{}", view.text());
        }
    }
}

#[test]
fn what_is_pressed_in_a_replay_only_means_nothing_else() {
    let mut view = View::new(80, 24);
    view.key(KeyCode::Char('+'));
    assert_eq!(view.store.speed(), None);
    assert!(!view.text().contains("faster"));
    let mut view =
        View::with(80, 24, Wish { replay: Some(1.0), ..Wish::default() }, sample::snapshot());
    for _ in 0..40 {
        view.key(KeyCode::Char('+'));
    }
    assert_eq!(view.store.speed(), Some(super::store::SPEEDS.1));
}
