// SPDX-License-Identifier: GPL-2.0-only
//! What is drawn of a real recording (tests/fixtures).

use std::path::Path;

use ratatui::crossterm::event::KeyCode;

use super::super::store::Wish;
use super::View;
use crate::feed::{self, Wanted};
use crate::model::Snapshot;

/// The end of the recording.
fn snapshot() -> Snapshot {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/small.artis");
    let mut source = feed::source(Some(&path), Wanted::default()).expect("a recording");
    let mut intervals = 0;
    while source.next(None).expect("undamaged").is_some() {
        intervals += 1;
    }
    assert!(intervals > 5, "{intervals}");
    source.last().clone()
}

fn view(width: u16, height: u16) -> View {
    View::with(width, height, Wish::default(), snapshot())
}

#[test]
fn the_recording_at_80x24() {
    insta::assert_snapshot!(view(80, 24).text());
}

#[test]
fn the_recording_at_200x60() {
    insta::assert_snapshot!(view(200, 60).text());
}

#[test]
fn a_task_of_the_recording_at_80x24() {
    let mut view = view(80, 24);
    view.types("/RT0");
    view.key(KeyCode::Enter);
    view.key(KeyCode::Enter);
    insta::assert_snapshot!(view.text());
}
