// SPDX-License-Identifier: GPL-2.0-only
//! JSON, CSV and OpenMetrics of a real recording. How a rewritten recording
//! looks is to be read in the snapshots: no two are the same.

use std::path::Path;
use std::sync::Arc;

use scx_artis::feed::{self, Wanted};
use scx_artis::model::{Described, Snapshot, TaskMetrics};
use scx_artis::outlets::{csv, json, metrics};
use serde_json::Value;

/// Calls `look` at the end of each interval of the recording.
fn replay(mut look: impl FnMut(&Snapshot)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/small.artis");
    let mut source = feed::source(Some(&path), Wanted::default()).expect("a recording");
    while let Some(snapshot) = source.next(None).expect("an interval") {
        look(snapshot);
    }
}

/// The lines of the recording.
fn lines() -> Vec<Value> {
    let (mut out, mut lines) = (Vec::new(), json::Lines::default());
    replay(|snapshot| lines.write(&mut out, snapshot).expect("written"));
    let text = String::from_utf8(out).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Of the last interval.
fn last() -> Snapshot {
    let mut last = Snapshot::default();
    replay(|snapshot| last = snapshot.clone());
    last
}

#[test]
fn each_line_fits_the_schema() {
    let schema = json::schema().to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let lines = lines();
    assert!(lines.len() >= 8, "{} intervals", lines.len());
    for line in &lines {
        let errors: Vec<_> = validator.iter_errors(line).map(|e| e.to_string()).collect();
        assert_eq!(errors, [""; 0]);
    }
    // and it would notice
    for key in ["/schema", "/machine/cpus/2/rt_pct", "/tasks/0/pid", "/lost/ring", "/begin/kernel"]
    {
        let mut line = lines[0].clone();
        *line.pointer_mut(key).unwrap_or_else(|| panic!("no {key}")) = Value::from(vec![1]);
        assert!(!validator.is_valid(&line), "{key} may be a list");
        let (parent, member) = key.rsplit_once('/').expect("a path");
        let parent = line.pointer_mut(parent).and_then(Value::as_object_mut).expect("its object");
        parent.remove(member);
        assert!(!validator.is_valid(&line), "{key} may be absent");
    }
}

#[test]
fn each_event_is_in_one_line() {
    let mut told = 0;
    let lines = lines();
    for line in &lines {
        told += line["events"].as_array().expect("events").len() as u64;
        assert_eq!(line["nr_events"], told, "an event is missing, or twice there");
    }
    assert!(told > 100, "only {told} events");
    let of = |kind: &str| {
        lines
            .iter()
            .flat_map(|line| line["events"].as_array())
            .flatten()
            .find(|event| event["event"] == kind)
            .unwrap_or_else(|| panic!("no {kind}"))
            .clone()
    };
    insta::assert_json_snapshot!([of("eviction"), of("move"), of("exit")]);
}

#[test]
fn a_line_looks_like_this() {
    let mut line = lines().pop().expect("a line");
    // the whole of it but for most tasks and events, and the values of the policy
    let tasks = line["tasks"].as_array_mut().expect("tasks");
    let nr_tasks = tasks.len();
    let mut seen = std::collections::BTreeSet::new();
    tasks.retain(|task| {
        let class = task["class"].as_str().unwrap_or("").to_owned();
        task["comm"] == "cyclictest" && class == "RT0"
            || task["evictions"] != 0 && seen.insert(class)
    });
    line["events"].as_array_mut().expect("events").truncate(1);
    line["begin"]["policy"].as_object_mut().expect("a policy").retain(|name, _| name == "predict");
    assert!(nr_tasks > 20, "{nr_tasks} tasks");
    insta::assert_json_snapshot!(line);
}

#[test]
fn csv_has_a_row_for_each_task_and_interval() {
    let (mut out, mut tasks) = (Vec::new(), Vec::new());
    let mut rows = csv::Rows::begin(&mut out).expect("a head");
    replay(|snapshot| {
        rows.write(snapshot).expect("rows");
        tasks.push(snapshot.tasks.len());
    });
    drop(rows);
    let mut reader = ::csv::Reader::from_reader(out.as_slice());
    let heads: Vec<_> = reader.headers().expect("heads").iter().map(str::to_owned).collect();
    assert_eq!(heads.len(), 1 + TaskMetrics::FIELDS.len());
    let rows: Vec<_> = reader.records().collect::<Result<_, _>>().expect("whole rows");
    assert_eq!(rows.len(), tasks.iter().sum::<usize>());
    let comm = heads.iter().position(|head| head == "comm").expect("a column");
    let row = rows.iter().rev().find(|row| &row[comm] == "cyclictest").expect("cyclictest");
    let cells = heads.iter().zip(row).map(|(head, cell)| format!("{head}: {cell}\n"));
    insta::assert_snapshot!(cells.collect::<String>());
}

#[test]
fn metrics_look_like_this() {
    let text = metrics::encode(Arc::new(last()), 3).expect("encoded");
    // each family once: of the CPUs number 2, of the tasks cyclictest, and few buckets
    let shown = text.lines().filter(|line| {
        let (is_cpu, is_task) = (line.contains("{cpu=\""), line.contains("{pid=\""));
        line.starts_with('#') && !line.starts_with("# HELP")
            || is_cpu && line.contains("cpu=\"2\"") && !line.contains("le=")
            || is_task
                && line.contains("cyclictest")
                && line.contains("RT0")
                && !line.contains("le=")
            || line.contains("le=\"0.001024\"")
            || !is_cpu && !is_task && !line.starts_with('#') && !line.contains("le=")
    });
    insta::assert_snapshot!(shown.map(|line| format!("{line}\n")).collect::<String>());
}
