// SPDX-License-Identifier: GPL-2.0-only
//! docs/scenes.md is what the table of keys prints, and its examples are scenes. After a
//! change of either: LOLLOBRIGIDA_WRITE_DOCS=1.

use std::path::PathBuf;

use lollobrigida::scene::{Format, keys, parse, reference};

#[test]
fn the_page_is_what_the_table_prints() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenes.md");
    if std::env::var_os("LOLLOBRIGIDA_WRITE_DOCS").is_some() {
        std::fs::write(&path, reference()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == reference(), "docs/scenes.md is old: run with LOLLOBRIGIDA_WRITE_DOCS=1");
    for key in keys::KEYS {
        assert!(page.contains(&format!("| `{}` |", key.name)), "{} is not there", key.name);
    }
}

#[test]
fn the_examples_of_the_page_are_scenes() {
    let page = reference();
    let mut examples = 0;
    for (fence, format) in [("```toml\n", Format::Toml), ("```scn\n", Format::AnnexB)] {
        for example in page.split(fence).skip(1) {
            let text = example.split("```").next().unwrap();
            parse("example", text, format).unwrap_or_else(|m| panic!("{m}\n{text}"));
            examples += 1;
        }
    }
    assert!(examples >= 4, "{examples} examples");
}
