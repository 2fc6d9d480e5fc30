// SPDX-License-Identifier: GPL-2.0-only
//! What each key does: one table, from which the help, the line at the bottom and the dispatch
//! all come.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Something that the user may want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// End the view.
    Leave,
    /// Give the terminal back for a while.
    Stop,
    /// Show or hide the help.
    Help,
    /// Close what was opened last.
    Back,
    /// Show the selected task.
    Open,
    /// Show the event log, or the tasks again.
    Log,
    /// Show all CPUs, or the tasks again.
    Cpus,
    /// Show all counters, or the tasks again.
    Totals,
    /// Hold what is shown, or go on.
    Pause,
    /// One row up.
    Up,
    /// One row down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Sort by the next shown column.
    SortNext,
    /// Sort by the shown column before.
    SortPrevious,
    /// Turn the order round.
    Reverse,
    /// Show columns further right.
    Right,
    /// Show columns further left.
    Left,
    /// Begin to type a filter.
    Filter,
    /// Play the recording faster.
    Faster,
    /// Play the recording slower.
    Slower,
    /// Draw all anew.
    Redraw,
    /// End typing; the filter stays.
    Keep,
    /// End typing without a filter.
    Drop,
    /// Take back a letter of the filter.
    Erase,
    /// Take back all of it.
    Clear,
}

/// Where a key means this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Everywhere but while a filter is typed.
    Looking,
    /// The same, while a recording is played.
    Replaying,
    /// While a filter is typed.
    Typing,
}

/// Keys, and what they do.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The keys; each does the same.
    pub keys: &'static [(KeyCode, KeyModifiers)],
    /// Where.
    pub when: When,
    /// The keys in letters.
    pub shown: &'static str,
    /// A word for the line at the bottom; empty: it is not there.
    pub short: &'static str,
    /// What they do.
    pub what: &'static str,
    /// That.
    pub action: Action,
}

const NONE: KeyModifiers = KeyModifiers::NONE;
const CTRL: KeyModifiers = KeyModifiers::CONTROL;

macro_rules! keys {
    ($($when:ident $action:ident $shown:literal $short:literal $what:literal [$($code:expr),*];)*) => {
        /// All keys.
        pub const KEYS: &[Binding] = &[$(Binding {
            keys: &[$($code),*],
            when: When::$when,
            shown: $shown,
            short: $short,
            what: $what,
            action: Action::$action,
        },)*];
    };
}

const fn key(code: KeyCode) -> (KeyCode, KeyModifiers) {
    (code, NONE)
}

const fn letter(letter: char) -> (KeyCode, KeyModifiers) {
    (KeyCode::Char(letter), NONE)
}

const fn ctrl(letter: char) -> (KeyCode, KeyModifiers) {
    (KeyCode::Char(letter), CTRL)
}

keys! {
    Looking Leave "q Ctrl-C" "leave" "leave" [letter('q'), ctrl('c')];
    Looking Help "? F1" "help" "show or hide this help" [letter('?'), key(KeyCode::F(1))];
    Looking Open "Enter" "detail" "all about the selected task" [key(KeyCode::Enter)];
    Looking Back "Esc" "" "back to the tasks; there: drop the filter" [key(KeyCode::Esc), key(KeyCode::Backspace)];
    Looking Pause "Space" "freeze" "freeze what is shown, or go on; nothing is lost meanwhile" [letter(' ')];
    Looking Filter "/" "filter" "show only what has this name, id (its first digits) or class" [letter('/')];
    Looking Log "e" "events" "the event log, or the tasks again" [letter('e')];
    Looking SortNext "s" "sort" "sort by the next column" [letter('s')];
    Looking SortPrevious "S" "" "sort by the column before" [letter('S')];
    Looking Reverse "r" "reverse" "turn the order round" [letter('r')];
    Looking Cpus "c" "CPUs" "all CPUs, or the tasks again" [letter('c')];
    Looking Totals "t" "totals" "all counters of what the scheduler did, or the tasks again" [letter('t')];
    Looking Up "Up k" "" "one row up" [key(KeyCode::Up), letter('k')];
    Looking Down "Down j" "" "one row down" [key(KeyCode::Down), letter('j')];
    Looking PageUp "PgUp" "" "a page up" [key(KeyCode::PageUp)];
    Looking PageDown "PgDn" "" "a page down" [key(KeyCode::PageDown)];
    Looking First "Home g" "" "to the first row" [key(KeyCode::Home), letter('g')];
    Looking Last "End G" "" "to the last row; in the log: follow it again" [key(KeyCode::End), letter('G')];
    Looking Right "Right l" "" "columns further right" [key(KeyCode::Right), letter('l')];
    Looking Left "Left h" "" "columns further left" [key(KeyCode::Left), letter('h')];
    Looking Stop "Ctrl-Z" "" "stop scx_artis top; the shell's fg brings it back" [ctrl('z')];
    Looking Redraw "Ctrl-L" "" "draw all anew" [ctrl('l')];
    Replaying Faster "+" "faster" "play the recording faster" [letter('+'), letter('=')];
    Replaying Slower "-" "slower" "play the recording slower" [letter('-')];
    Typing Keep "Enter" "keep" "keep the filter" [key(KeyCode::Enter)];
    Typing Drop "Esc" "drop" "drop the filter" [key(KeyCode::Esc)];
    Typing Erase "Backspace" "" "take back a letter" [key(KeyCode::Backspace)];
    Typing Clear "Ctrl-U" "clear" "take back all letters" [ctrl('u')];
    Typing Leave "Ctrl-C" "" "leave" [ctrl('c')];
}

/// What the mouse does, for the help: where, and what.
pub const MOUSE: [(&str, &str); 4] = [
    ("click a row", "select that task; again: all about it"),
    ("click a title", "sort by that column; again: turn the order round"),
    ("click an RT0 task", "select it; again: all about it"),
    ("wheel", "rows up and down"),
];

/// What `event` asks for, if anything.
pub fn action(event: &KeyEvent, typing: bool, replaying: bool) -> Option<Action> {
    let here = |when| match when {
        When::Looking => !typing,
        When::Replaying => !typing && replaying,
        When::Typing => typing,
    };
    // a capital letter is one, with or without the terminal saying that shift was held
    let modifiers = event.modifiers - KeyModifiers::SHIFT;
    KEYS.iter()
        .filter(|binding| here(binding.when))
        .find(|binding| binding.keys.contains(&(event.code, modifiers)))
        .map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_key_means_two_things_at_one_place() {
        let mut seen = HashSet::new();
        for binding in KEYS {
            let typing = binding.when == When::Typing;
            for key in binding.keys {
                assert!(seen.insert((typing, *key)), "{key:?} twice");
            }
        }
    }

    #[test]
    fn each_key_is_in_the_help_under_its_name() {
        let name = |(code, modifiers): &(KeyCode, KeyModifiers)| match code {
            KeyCode::Char(' ') => "Space".to_owned(),
            KeyCode::Char(c) if *modifiers == CTRL => format!("Ctrl-{}", c.to_ascii_uppercase()),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::PageUp => "PgUp".to_owned(),
            KeyCode::PageDown => "PgDn".to_owned(),
            other => other.to_string(),
        };
        for binding in KEYS {
            // + without shift is = on many keyboards, and Backspace is a second Esc
            let told: Vec<_> = binding.shown.split(' ').collect();
            assert!(told.contains(&name(&binding.keys[0]).as_str()), "{binding:?}");
            assert!(told.len() <= binding.keys.len(), "{binding:?}");
            for word in told {
                assert!(binding.keys.iter().any(|key| name(key) == word), "{word}: {binding:?}");
            }
        }
    }
}
