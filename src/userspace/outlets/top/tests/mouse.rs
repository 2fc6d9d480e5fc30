// SPDX-License-Identifier: GPL-2.0-only
//! The mouse does what the help says.

use ratatui::crossterm::event::{KeyCode, MouseEventKind};

use super::super::store::Page;
use super::View;

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
