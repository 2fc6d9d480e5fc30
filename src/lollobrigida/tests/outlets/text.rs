// SPDX-License-Identifier: GPL-2.0-only
//! Tables, CSV and JSON as they look, and what must hold for any of them.
use crate::fixtures;
use lollobrigida::outlets::table::{self, MANY_TASKS, Style};
use lollobrigida::outlets::{csv, html, json};
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
fn several_runs_under_one_scheduler_have_no_ratio() {
    let runs = vec![(0..3).map(fixtures::default_run).collect()];
    let comparison = compare(vec!["default".into()], runs);
    let text = table::comparison(&comparison, Style::plain());
    assert!(text.contains("makespan") && text.contains("± stdev"));
    let page = html::comparison(&comparison).unwrap();
    assert!(page.contains("The runs together"));
    for absent in ["ratio\n", "ratio:", "*"] {
        assert!(!text.contains(absent), "{text}");
    }
    assert!(!page.contains("× ratio to") && !page.contains("title=\"best\""));
}

#[test]
fn csv_of_a_run_looks_like_this() {
    insta::assert_snapshot!(csv::run(&fixtures::artis_run(0)).unwrap());
}

#[test]
fn json_of_a_run_looks_like_this() {
    let mut run = full_run();
    run.tasks.truncate(5);
    run.timeline.truncate(3);
    insta::assert_snapshot!(json::write(&json::Document::Run(&run)).unwrap());
}

/// Names and numbers of CPUs that no screen has room for.
fn long_run() -> Run {
    let mut run = full_run();
    run.scene =
        "a_scene_with_a_name_that_goes_on_and_on_and_on_until_it_is_longer_than_a_line".into();
    run.groups[0].name = "control of everything that moves, and of much that does not".into();
    run.warnings[0].text +=
        " and_a_word_that_has_no_place_to_be_parted_at_and_is_longer_than_80_columns_are_wide";
    let cpu = run.cpus[0];
    run.cpus.extend((4..64).map(|n| lollobrigida::result::Cpu { cpu: n, ..cpu }));
    run
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let long = "scx_something --with options --that-go on and on --until-nobody reads-them";
    for width in [80, 100, 132] {
        let style = Style { width, ..Style::plain() };
        for text in [
            table::run(&fixtures::artis_run(0), style),
            table::run(&full_run(), style),
            table::run(&long_run(), style),
            table::comparison(&comparison(), style),
            table::comparison(&compare(vec![long.into()], vec![vec![long_run()]]), style),
        ] {
            for line in text.lines() {
                assert!(line.chars().count() <= width.into(), "{width} < {line:?}");
            }
        }
    }
}

#[test]
fn what_is_not_known_is_said_and_not_made_up() {
    let mut run = fixtures::default_run(0);
    run.timeline.clear();
    for task in &mut run.tasks {
        (task.wait_ns, task.cpu_time_ns, task.migrations) = (None, None, None);
        task.wakeup = None;
    }
    run.tasks[0].wait_ns = Some(123_000_000);
    for cpu in &mut run.cpus {
        (cpu.rt, cpu.fair, cpu.other) = (None, None, None);
    }
    for group in &mut run.groups {
        (group.wakeup, group.finished) = (None, 0);
    }
    let page = html::run(&run).unwrap();
    assert!(page.contains("<td>?</td>") && page.contains("busy, not known by whom"));
    for absent in ["NaN", "inf", "timeline-0", "locality-0", "id=\"wakeups\"", "id=\"fairness\""] {
        assert!(!page.contains(absent), "{absent}");
    }
    let text = table::run(&run, Style::plain());
    assert!(text.contains("123\u{a0}ms") && text.contains(" ? "), "{text}");
    for absent in ["NaN", "inf", "time on each CPU", "moved", "real-time", "fairness"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

#[test]
fn a_run_of_nothing_is_no_accident() {
    let run = fixtures::bare("default", None);
    let comparison = compare(vec!["default".into()], vec![vec![run.clone()]]);
    for text in [
        html::run(&run).unwrap(),
        html::comparison(&comparison).unwrap(),
        table::run(&run, Style::plain()),
        table::comparison(&comparison, Style::plain()),
    ] {
        assert!(text.contains(&run.scene) && !text.contains("NaN"), "{text}");
    }
    let nothing = compare(vec!["default".into()], Vec::new());
    assert!(html::comparison(&nothing).unwrap_err().to_string().contains("no run"));
    assert_eq!(csv::comparison(&nothing).unwrap().lines().count(), 1, "the header");
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
