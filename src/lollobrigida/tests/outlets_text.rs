// SPDX-License-Identifier: GPL-2.0-only
//! Tables, CSV and JSON as they look, and what must hold for any of them.

mod fixtures;

use lollobrigida::outlets::table::{self, MANY_TASKS, Style};
use lollobrigida::outlets::{csv, json};
use lollobrigida::result::Run;
use lollobrigida::result::comparison::{Comparison, compare};

fn comparison() -> Comparison {
    let runs = |of: fn(u32) -> Run| (0..3).map(of).collect();
    compare(
        vec!["default".into(), "scx_artis:--rt-cpus 1-3".into()],
        vec![runs(fixtures::default_run), runs(fixtures::artis_run)],
    )
}

/// A task that was cut, ages of items, energy: what the plain fixture lacks.
fn full_run() -> Run {
    let mut run = fixtures::artis_run(0);
    (run.cut, run.energy_uj) = (true, Some(12_345_678));
    run.tasks[4].cut = Some("the limit of 400 ms".into());
    run.groups[1].finished -= 1;
    run.groups[1].item_age = run.groups[0].wakeup;
    run.missing.clear();
    run
}

#[test]
fn a_run_looks_like_this() {
    insta::assert_snapshot!(table::run(&fixtures::default_run(0), Style::plain()));
}

#[test]
fn a_cut_run_looks_like_this() {
    insta::assert_snapshot!(table::run(&full_run(), Style::plain()));
}

#[test]
fn a_comparison_looks_like_this() {
    insta::assert_snapshot!(table::comparison(&comparison(), Style::plain()));
}

#[test]
fn csv_of_a_run_looks_like_this() {
    insta::assert_snapshot!(csv::run(&fixtures::artis_run(0)).unwrap());
}

#[test]
fn json_of_a_run_looks_like_this() {
    let mut run = full_run();
    (run.tasks.truncate(5), run.timeline.truncate(3));
    insta::assert_snapshot!(json::write(&json::Document::Run(&run)).unwrap());
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [80, 100, 132] {
        let style = Style { width, ..Style::plain() };
        for text in [
            table::run(&fixtures::artis_run(0), style),
            table::run(&full_run(), style),
            table::comparison(&comparison(), style),
        ] {
            for line in text.lines() {
                assert!(line.chars().count() <= width.into(), "{width} < {line:?}");
            }
        }
    }
}

fn without_attributes(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').unwrap().1).collect::<String>()
}

#[test]
fn attributes_change_nothing_but_the_looks() {
    let bold = Style { attributes: true, ..Style::plain() };
    for (plain, bold) in [
        (table::run(&full_run(), Style::plain()), table::run(&full_run(), bold)),
        (table::comparison(&comparison(), Style::plain()), table::comparison(&comparison(), bold)),
    ] {
        assert!(!plain.contains('\x1b'));
        assert!(bold.contains("\x1b["));
        let trimmed = |t: &str| t.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(trimmed(&without_attributes(&bold)), trimmed(&plain));
    }
}

#[test]
fn many_tasks_are_shown_by_group_unless_asked() {
    let mut run = fixtures::default_run(0);
    while run.tasks.len() <= MANY_TASKS {
        let task = run.tasks[5].clone();
        run.tasks.push(task);
    }
    assert!(!table::run(&run, Style::plain()).contains("\ntasks\n"));
    let all = table::run(&run, Style { every_task: true, ..Style::plain() });
    assert!(all.contains("\ntasks\n"));
    run.tasks.pop();
    assert!(table::run(&run, Style::plain()).contains("\ntasks\n"));
}

#[test]
fn the_best_is_marked_without_colour() {
    let text = table::comparison(&comparison(), Style::plain());
    let makespan: Vec<&str> =
        text.lines().skip_while(|l| !l.starts_with("makespan")).take(2).collect();
    assert!(!makespan[0].contains('*') && makespan[1].contains('*'), "{makespan:?}");
}

#[test]
fn csv_has_a_row_for_each_task_of_each_run_and_reads_back() {
    let comparison = comparison();
    let text = csv::comparison(&comparison).unwrap();
    let mut reader = ::csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|h| h == name).unwrap_or_else(|| panic!("{name}"));
    let rows: Vec<::csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2 * 3 * 15);
    let row = rows.iter().find(|r| {
        &r[at("scheduler")] == "scx_artis:--rt-cpus 1-3"
            && &r[at("run")] == "2"
            && &r[at("group")] == "control"
            && &r[at("task")] == "1"
    });
    let (row, task) = (row.unwrap(), &comparison.runs[1][2].tasks[1]);
    assert_eq!(row[at("wall_ns")], task.wall_ns.to_string());
    assert_eq!(row[at("wakeup_p99_ns")], task.wakeup.unwrap().p99_ns.to_string());
    let on =
        ["cpu0_ns", "cpu1_ns", "cpu2_ns", "cpu3_ns"].map(|c| row[at(c)].parse::<u64>().unwrap());
    assert_eq!(on.iter().sum::<u64>(), task.cpu_ns);
    assert_eq!(&row[at("item_age_count")], "", "not known is empty");
}

#[test]
fn json_reads_back() {
    let run = full_run();
    let text = json::write(&json::Document::Run(&run)).unwrap();
    assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
    let comparison = comparison();
    let text = json::write(&json::Document::Comparison(&comparison)).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&text).unwrap(), comparison);
}

#[test]
fn the_schema_file_is_of_these_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run-schema.json");
    let fresh = serde_json::to_string_pretty(&json::schema()).unwrap() + "\n";
    if std::env::var_os("LOLLOBRIGIDA_WRITE_SCHEMA").is_some() {
        std::fs::write(path, &fresh).unwrap();
    }
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == fresh,
        "docs/run-schema.json is not the schema of result::Run: run this test with \
         LOLLOBRIGIDA_WRITE_SCHEMA=1 and commit the file; if a field was renamed or removed, \
         raise result::SCHEMA"
    );
}

#[test]
fn documents_fit_the_schema() {
    let schema = serde_json::to_value(json::schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for text in [
        json::write(&json::Document::Run(&full_run())).unwrap(),
        json::write(&json::Document::Comparison(&comparison())).unwrap(),
    ] {
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(validator.is_valid(&value), "{:?}", validator.iter_errors(&value).next());
        value.as_object_mut().unwrap().remove("scene");
        assert!(!validator.is_valid(&value), "a document without a scene");
    }
}
