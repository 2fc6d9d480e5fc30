// SPDX-License-Identifier: GPL-2.0-only
//! The crates that are linked have licences that go with GPL-2.0-only, and come from the registry
//! (docs/decisions/0022-crates.md).

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use spdx::Expression;

/// Licences of code that may be a part of a program under GPL-2.0-only. Apache-2.0 is none of them
/// (the Free Software Foundation's list of licences).
const FIT: [&str; 13] = [
    "0BSD",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "GPL-2.0-only",
    "ISC",
    "LGPL-2.1-only",
    "MIT",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "WTFPL",
    "Zlib",
];
/// Named by crates that we link, but no code of them is in the programs: scx_utils has bindgen for
/// build scripts, and that has clang-sys.
const UNUSED: [&str; 1] = ["clang-sys"];

/// Name and licence of each crate that is linked into a program.
fn linked() -> BTreeSet<(String, String)> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--offline", "--edges", "normal", "--prefix", "none"]);
    tree.args(["--format", "{p}\t{l}", "--package", "scx_artis", "--package", "lollobrigida"]);
    let out = tree.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo tree");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).expect("text");
    let of_line = |line: &str| {
        let (name, licence) = line.split_once('\t')?;
        let name = name.split_whitespace().next()?.to_owned();
        Some((name, licence.trim_end_matches(" (*)").to_owned()))
    };
    text.lines().filter_map(of_line).collect()
}

fn fits(licence: &str) -> bool {
    let expression = Expression::parse_mode(licence, spdx::ParseMode::LAX);
    let expression = expression.unwrap_or_else(|error| panic!("{licence}: {error}"));
    expression.evaluate(|asked| asked.license.id().is_some_and(|id| FIT.contains(&id.name)))
}

#[test]
fn licences_go_with_ours() {
    let linked = linked();
    assert!(linked.len() > 100, "{} crates", linked.len());
    let unfit: Vec<_> = linked
        .iter()
        .filter(|(name, licence)| !UNUSED.contains(&name.as_str()) && !fits(licence))
        .collect();
    assert!(unfit.is_empty(), "{unfit:?}");
    for name in UNUSED {
        assert!(linked.iter().any(|(linked, _)| linked == name), "{name} is no exception any more");
    }
}

#[test]
fn some_licences_do_not() {
    assert!(fits("MIT OR Apache-2.0") && fits("Apache-2.0/MIT") && fits("MIT AND Unicode-3.0"));
    assert!(!fits("Apache-2.0") && !fits("MIT AND Apache-2.0") && !fits("GPL-3.0-only"));
}

#[test]
fn crates_come_from_the_registry() {
    for lock in ["Cargo.lock", "tests/fuzz/Cargo.lock"] {
        let path = format!("{}/{lock}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).expect("a lock file");
        let sources: Vec<_> =
            text.lines().filter_map(|line| line.strip_prefix("source = ")).collect();
        assert!(sources.len() > 100, "{lock}: {} crates", sources.len());
        for source in sources {
            assert!(source.starts_with("\"registry+"), "{lock}: {source}");
        }
    }
}
