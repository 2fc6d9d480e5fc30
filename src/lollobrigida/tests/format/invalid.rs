// SPDX-License-Identifier: GPL-2.0-only
//! One file for each message in tests/invalid: the words, line, column and key that the
//! user sees, as snapshots beside them. After a change: INSTA_UPDATE=always.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lollobrigida::scene::{Format, parse, render};

fn fixtures() -> Vec<(String, String)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/invalid");
    let mut all: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn each_mistake_has_its_words() {
    let mut seen = BTreeSet::new();
    let mut all = String::new();
    for (name, text) in fixtures() {
        let format = Format::guess(name.as_ref(), &text);
        let mistakes = parse(&name, &text, format).expect_err(&name);
        for mistake in mistakes.list() {
            let key = mistake.key.as_deref().unwrap_or("-");
            all += &format!(
                "{name}:{}:{} [{key}] {}: {}\n",
                mistake.line, mistake.column, mistake.seen, mistake.expected
            );
            if let Some(help) = &mistake.help {
                all += &format!("    {help}\n");
            }
            seen.insert(mistake.seen.clone());
        }
    }
    assert!(seen.len() >= 60, "{} different mistakes", seen.len());
    insta::with_settings!({ snapshot_path => "../invalid/snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("mistakes", all);
    });
}

#[test]
fn all_mistakes_of_a_file_are_reported_in_its_order() {
    let (name, text) = fixtures().into_iter().find(|(name, _)| name == "many.toml").unwrap();
    let mistakes = parse(&name, &text, Format::Toml).unwrap_err();
    let mut lines: Vec<_> = mistakes.list().iter().map(|m| m.line).collect();
    lines.dedup();
    let marked = text.lines().enumerate().filter(|(_, line)| line.contains("# wrong"));
    assert_eq!(lines, marked.map(|(i, _)| i + 1).collect::<Vec<_>>(), "{mistakes}");
}

#[test]
fn off_a_terminal_there_is_a_line_for_each_mistake() {
    let mistakes = parse("a.scn", "{\nlop = 1\nloop = x\n}\n", Format::AnnexB).unwrap_err();
    let plain = render(&mistakes.into(), false);
    assert_eq!(
        plain,
        "a.scn:2:1: `lop` is no known key: did you mean `loop`?\n\
         a.scn:3:8: `loop` is x: expected a whole number from 1 to 1000000000000 (iterations)"
    );
}

#[test]
fn on_a_terminal_the_lines_are_drawn() {
    let text = "{\nloop = 1\nloop = 2\n}\n";
    let drawn = render(&parse("a.scn", text, Format::AnnexB).unwrap_err().into(), true);
    for words in ["a.scn:3:1", "loop = 2", "`loop` is here twice", "first here", "each key once"] {
        assert!(drawn.contains(words), "{words} is not in {drawn}");
    }
}
