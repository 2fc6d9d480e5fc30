// SPDX-License-Identifier: GPL-2.0-only
//! The figures of README are those of saved reports.
//!
//! A row of its table "Measured" has three cells: what is measured; the figures; the command, in
//! backticks, with links to its reports. The figures are given for each kernel, as
//! `6.18: 1.45 × (1.44 to 1.47), 0 bodies; 7.0-rt: ...`: the median, its unit, and the lowest and
//! the highest value, which are left out where all three are equal. Each must be, to the digit, a
//! figure that a report has of a measurement that the command names.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use regex::Regex;

/// A report has at least so many rounds.
const ROUNDS_MIN: usize = 5;

const NUMBER: &str = "[0-9][0-9,]*(?:[.][0-9]+)?";

fn regex(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// A figure of a report, in its words.
struct Figure<'a> {
    kernel: &'a str,
    measurement: &'a str,
    name: &'a str,
    n: usize,
    lowest: &'a str,
    median: &'a str,
    highest: &'a str,
    unit: &'a str,
    /// See `compared` in tests/vm/src/figure.rs.
    order: String,
}

struct Report<'a> {
    commit: &'a str,
    /// Kernel and measurement of those of which a round failed.
    failed: Vec<(&'a str, &'a str)>,
    figures: Vec<Figure<'a>>,
}

impl<'a> Report<'a> {
    /// Fails unless its sources were those of a commit.
    fn parse(text: &'a str) -> Result<Self> {
        let commit = text.lines().find_map(|line| line.strip_prefix("sources "));
        let commit = commit.context("it names no sources")?.trim();
        ensure!(regex("^[0-9a-f]{7,}$").is_match(commit), "its sources are no commit: {commit}");
        let table = |name: &str| {
            let rows = text.lines().skip_while(move |line| line.split(' ').next() != Some(name));
            let rows = rows.skip(1).take_while(|line| !matches!(*line, "" | "```"));
            rows.map(|line| line.split_whitespace().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let mut failed = Vec::new();
        for row in table("trials") {
            let [kernel, measurement, passed, "of", all, ..] = row[..] else {
                anyhow::bail!("no row of trials: {row:?}");
            };
            if passed != all {
                failed.push((kernel, measurement));
            }
        }
        let mut figures = Vec::new();
        for row in table("figures") {
            let [kernel, measurement, name, n, lowest, median, highest, unit, ref order @ ..] =
                row[..]
            else {
                anyhow::bail!("no row of figures: {row:?}");
            };
            let (n, order) = (n.parse()?, order.join(" "));
            let figure =
                Figure { kernel, measurement, name, n, lowest, median, highest, unit, order };
            figures.push(figure);
        }
        Ok(Self { commit, failed, figures })
    }

    /// Fails unless README may quote it.
    fn ensure_sound(&self, figure: &Figure) -> Result<()> {
        let Figure { kernel, measurement, name, n, unit, order, .. } = figure;
        ensure!(*n >= ROUNDS_MIN, "{name}: {n} rounds");
        let failed = self.failed.contains(&(kernel, measurement));
        ensure!(!failed, "{name}: a round of {measurement} failed on {kernel}");
        if !order.is_empty() || *unit == "×" || name.contains("default") {
            ensure!(
                regex("^(ABBA|alternating), .+ each$").is_match(order),
                "{name}: a comparison in the order '{order}'"
            );
        }
        Ok(())
    }
}

/// The figures and the source of each row of the table.
fn rows(readme: &str) -> Result<Vec<(&str, &str)>> {
    let (_, table) = readme.split_once("\n## Measured\n").context("no section \"Measured\"")?;
    let table = table.split("\n## ").next().unwrap_or(table);
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |line: &'_ str| line.trim_matches('|').split('|').map(str::trim).count();
    let mut rows = Vec::new();
    for line in lines {
        ensure!(cells(line) == 3, "not three cells: {line}");
        let mut cells = line.trim_matches('|').split('|').map(str::trim).skip(1);
        rows.push((cells.next().unwrap_or(""), cells.next().unwrap_or("")));
    }
    Ok(rows)
}

/// Fails unless each figure of the row is one of its reports, which `read` gives by their paths.
fn check(figures: &str, source: &str, read: &dyn Fn(&str) -> Result<String>) -> Result<()> {
    let command = regex("`(scripts/(?:test|bench) [^`]+)`");
    let command = command.captures(source).context("no command in backticks")?;
    let named = |name: &str| command[1].split([' ', '"', ',']).any(|word| word == name);
    let paths: Vec<String> = regex(r"\]\((docs/measurements/[^)]+)\)")
        .captures_iter(source)
        .map(|link| link[1].to_string())
        .collect();
    let texts = paths
        .iter()
        .map(|path| read(path).with_context(|| path.clone()))
        .collect::<Result<Vec<_>>>()?;
    let mut reports = Vec::new();
    for (path, text) in paths.iter().zip(&texts) {
        reports.push(Report::parse(text).with_context(|| path.clone())?);
    }
    ensure!(!reports.is_empty(), "no link to a report in docs/measurements");
    let one = regex(&format!(r"\b({NUMBER}) ([^ ,;.()]+)(?: \(({NUMBER}) to ({NUMBER})\))?"));
    for part in figures.split("; ") {
        let (kernel, text) = part.split_once(": ").context("no kernel before the figures")?;
        for quoted in one.captures_iter(text) {
            let number = |i| quoted.get(i).map(|m| m.as_str().replace(',', ""));
            let median = number(1).unwrap_or_default();
            let (lowest, highest) = (number(3), number(4));
            let same = |f: &Figure| {
                (f.kernel, f.median, f.unit) == (kernel, &median, &quoted[2])
                    && f.lowest == lowest.as_ref().unwrap_or(&median)
                    && f.highest == highest.as_ref().unwrap_or(&median)
                    && named(f.measurement)
            };
            let found = reports.iter().find_map(|r| Some((r, r.figures.iter().find(|f| same(f))?)));
            let (report, figure) = found
                .with_context(|| format!("'{}' is no figure of {kernel} there", &quoted[0]))?;
            report.ensure_sound(figure)?;
        }
        let rest = one.replace_all(text, "");
        ensure!(rest.len() < text.len(), "no figure: {text}");
        ensure!(!regex(r"\b[0-9]").is_match(&rest), "a number that is no figure: {text}");
    }
    Ok(())
}

#[test]
fn figures_are_those_of_reports() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let rows = rows(&readme).expect("rows");
    assert!(!rows.is_empty());
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path))?;
        let commit = Report::parse(&text)?.commit;
        // an archive of the sources has no history, a shallow clone not all of it
        let ancestor = !root.join(".git").exists()
            || root.join(".git/shallow").exists()
            || Command::new("git")
                .args(["merge-base", "--is-ancestor", commit, "HEAD"])
                .current_dir(root)
                .status()?
                .success();
        ensure!(ancestor, "{commit} is not in the history of HEAD");
        Ok(text)
    };
    for (figures, source) in rows {
        if let Err(e) = check(figures, source, &read) {
            panic!("README, row of {source}: {e:#}");
        }
    }
}

const REPORT: &str = "# scenarios, 2026-11-23 10:00

```
command    scripts/test --repeat 5 --save
kernel     6.18.15+deb13-cloud-amd64 (6.18)
sources    c2ebd7a

trials                passed  again   seconds
6.18 wakes            5 of 5      0   30.0 (29.0 to 31.5)
7.0-rt wakes          5 of 5      1   33.0 (29.0 to 41.5)

figures               n   lowest   median  highest unit, order
6.18 wakes ratio      5     1.44     1.45     1.47 × ABBA, 512 wake-ups each
6.18 wakes bodies     5        0        0        0 bodies
7.0-rt wakes ratio    5     1.50     1.55     1.57 × ABBA, 512 wake-ups each
7.0-rt wakes wakeups  5    15000    15512    16000 wake-ups
```
";
const FIGURES: &str = "6.18: 1.45 × (1.44 to 1.47) on RT0, 0 bodies; \
                       7.0-rt: 1.55 × (1.50 to 1.57), 15,512 wake-ups (15,000 to 16,000)";
const SOURCE: &str = "`scripts/test --scenarios \"wakes tally\"`, [report](docs/measurements/x.md)";

fn why_not(figures: &str, source: &str, report: &str) -> String {
    let read = |path: &str| {
        ensure!(path == "docs/measurements/x.md", "no such file");
        Ok(report.to_string())
    };
    check(figures, source, &read).map_or_else(|e| format!("{e:#}"), |()| String::new())
}

#[test]
fn a_wrong_digit_is_found() {
    assert_eq!(why_not(FIGURES, SOURCE, REPORT), "");
    for (right, wrong, why) in [
        ("1.45", "1.46", "is no figure"),
        ("1.44 to", "1.43 to", "is no figure"),
        ("1.47)", "1.48)", "is no figure"),
        (" (1.44 to 1.47)", "", "is no figure"),
        ("0 bodies", "1 bodies", "is no figure"),
        ("15,512", "15,51", "is no figure"),
        ("0 bodies", "0 ×", "is no figure"),
        ("6.18:", "7.0-rt:", "is no figure"),
        ("6.18: ", "", "no kernel"),
        ("0 bodies", "bodies (0)", "a number that is no figure"),
        ("0 bodies; ", "; tally: none; ", "no figure"),
    ] {
        let row = FIGURES.replacen(right, wrong, 1);
        assert!(why_not(&row, SOURCE, REPORT).contains(why), "{row}");
    }
}

#[test]
fn a_report_that_says_too_little_is_found() {
    for (right, wrong, why) in [
        ("c2ebd7a", "c2ebd7a-dirty", "no commit"),
        ("sources", "source", "no sources"),
        ("5     1.44", "4     1.44", "4 rounds"),
        ("5 of 5      0", "4 of 5      0", "failed"),
        ("× ABBA, 512 wake-ups each", "×", "in the order"),
        ("× ABBA, 512 wake-ups each", "× fixed, 512 wake-ups each", "in the order"),
        ("× ABBA, 512 wake-ups each", "× ABBA, 5 s and 10 s", "in the order"),
        ("bodies     5", "bodies_default 5", "in the order"),
    ] {
        let report = REPORT.replacen(right, wrong, 1);
        assert!(why_not(FIGURES, SOURCE, &report).contains(why), "{wrong}");
    }
    for source in [SOURCE.replace("wakes", "waits"), SOURCE.replace("x.md", "y.md")] {
        assert_ne!(why_not(FIGURES, &source, REPORT), "", "{source}");
    }
    assert!(why_not(FIGURES, "`scripts/test`", REPORT).contains("no command"));
    assert!(why_not(FIGURES, "`scripts/test --quick`", REPORT).contains("no link"));
}

#[test]
fn rows_are_those_of_the_table() {
    let readme = "# x\n| no |\n## Measured\n\n| what | figure | command |\n|---|---|---|\n\
                  | a | b | c |\n\n## Limits\n| d | e | f |\n";
    let found = rows(readme).expect("rows");
    assert_eq!(found, [("b", "c")]);
    assert!(rows(&readme.replace("| b |", "| b")).is_err(), "two cells");
    assert!(rows("# x\n").is_err());
}
