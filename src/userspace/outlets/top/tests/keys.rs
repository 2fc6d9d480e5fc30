// SPDX-License-Identifier: GPL-2.0-only
//! Each key does what the help says.

use std::collections::HashSet;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::super::event::Event;
use super::super::keys::{Action, KEYS, When};
use super::super::store::{Flow, Page, SPEEDS, Wish};
use super::{View, sample};

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
    assert_eq!(view.store.speed(), Some(SPEEDS.1));
}
