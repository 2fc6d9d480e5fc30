// SPDX-License-Identifier: GPL-2.0-only
//! Each line of SECURITY.md names a test that exists, or says that there is none.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use regex::Regex;

/// Words of a line that no test shows.
const NONE: &str = "not tested";

/// The sources that tests are looked for in.
struct Tests<'a> {
    /// The text of a file of the repository.
    read: &'a dyn Fn(&str) -> Option<String>,
    /// The sources of all scenarios.
    scenarios: &'a str,
}

impl Tests<'_> {
    fn ensure_scenario(&self, name: &str) -> Result<()> {
        let declared = format!("name: \"{name}\",");
        ensure!(self.scenarios.contains(&declared), "there is no scenario {name}");
        Ok(())
    }

    fn ensure_test(&self, path: &str, name: &str) -> Result<()> {
        let text = (self.read)(path).with_context(|| format!("there is no {path}"))?;
        let test = Regex::new(&format!(r"#\[test\]\s+fn {name}\(\)"))?;
        ensure!(test.is_match(&text), "{path} has no test {name}");
        Ok(())
    }

    /// Fails unless the cell names tests that exist, or none aloud.
    fn check(&self, cell: &str) -> Result<()> {
        let scenario = Regex::new("scenario `([a-z0-9_]+)`")?;
        let test = Regex::new("`([a-z0-9_/]+[.]rs)::([a-z0-9_]+)`")?;
        let mut named = 0;
        for found in scenario.captures_iter(cell) {
            self.ensure_scenario(&found[1])?;
            named += 1;
        }
        for found in test.captures_iter(cell) {
            self.ensure_test(&found[1], &found[2])?;
            named += 1;
        }
        ensure!(cell.matches('`').count() == 2 * named, "what is this: {cell}");
        ensure!(named > 0 || cell == NONE, "neither a test nor \"{NONE}\": {cell}");
        Ok(())
    }
}

/// The last cell of each row of each table.
fn cells(page: &str) -> Vec<&str> {
    let rows =
        page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| shown by |"));
    rows.map(|row| row.trim_end_matches('|').rsplit('|').next().unwrap_or_default().trim())
        .collect()
}

/// All scenarios that the guest knows of.
fn scenarios(root: &Path) -> String {
    let dir = fs::read_dir(root.join("tests/vm/src/scenarios")).expect("the scenarios");
    let read = |entry: fs::DirEntry| fs::read_to_string(entry.path()).expect("readable");
    dir.map(|entry| read(entry.expect("an entry"))).collect()
}

#[test]
fn each_line_names_a_test_that_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("SECURITY.md")).expect("SECURITY.md");
    let scenarios = scenarios(root);
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let tests = Tests { read: &read, scenarios: &scenarios };
    let cells = cells(&page);
    assert!(cells.len() > 20, "{cells:?}");
    for cell in cells {
        if let Err(error) = tests.check(cell) {
            panic!("SECURITY.md: {error:#}");
        }
    }
    let readme = fs::read_to_string(root.join("README.md")).expect("README.md");
    assert!(readme.contains("](SECURITY.md)"), "README.md does not link to it");
}

#[test]
fn a_line_without_a_test_is_found() {
    let read = |path: &str| {
        (path == "tests/a.rs").then(|| "#[test]\nfn one() {}\nfn helper() {}\n".to_owned())
    };
    let tests = Tests { read: &read, scenarios: "    name: \"forger\",\n" };
    let why_not = |cell| tests.check(cell).map_or_else(|e| format!("{e:#}"), |()| String::new());
    for right in
        ["scenario `forger`", "`tests/a.rs::one`", "scenario `forger`, `tests/a.rs::one`", NONE]
    {
        assert_eq!(why_not(right), "", "{right}");
    }
    for (wrong, why) in [
        ("scenario `forge`", "no scenario forge"),
        ("`tests/a.rs::two`", "has no test two"),
        ("`tests/a.rs::helper`", "has no test helper"),
        ("`tests/b.rs::one`", "there is no tests/b.rs"),
        ("`forger`", "what is this"),
        ("scenario `forger`, `one`", "what is this"),
        ("surely", "neither"),
        ("", "neither"),
    ] {
        assert!(why_not(wrong).contains(why), "{wrong}: {}", why_not(wrong));
    }
    let page = "| may | shown by |\n|---|---|\n| this | scenario `x` |\n| that, too | |\n";
    assert_eq!(cells(page), ["scenario `x`", ""]);
}
