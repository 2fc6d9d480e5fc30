// SPDX-License-Identifier: GPL-2.0-only
//! What is told of a real recording: `explain` and `export`, as users meet them. What they say
//! is looked at by a person when the recording is made anew (tests/fixtures).

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use scx_artis::feed::{self, Wanted};
use scx_artis::model::{Snapshot, Task, What};
use scx_artis::outlets::explain::Forecast;
use serde_json::Value;

const RECORDING: &str = "tests/fixtures/small.artis";

fn artis(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_artis"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
    command
}

fn each(mut look: impl FnMut(&Snapshot)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORDING);
    let mut source = feed::source(Some(&path), Wanted::default()).expect("a recording");
    while let Some(snapshot) = source.next(None).expect("whole") {
        look(snapshot);
    }
}

/// The busiest task at the end that `wanted` takes.
fn busiest(wanted: impl Fn(&Task) -> bool) -> u64 {
    let mut last = Snapshot::default();
    each(|snapshot| last = snapshot.clone());
    let all = last.tasks.values().filter(|task| wanted(task));
    let busiest = all.max_by(|a, b| a.metrics.run_s.total_cmp(&b.metrics.run_s));
    busiest.expect("such a task").metrics.pid
}

/// The busiest task that was evicted time and again.
fn evicted() -> u64 {
    busiest(|task| task.metrics.class == "NRT" && task.metrics.evictions > 10)
}

fn story_of(pid: u64) -> String {
    let out = artis(&["explain", &pid.to_string(), "--replay", RECORDING]).assert().success();
    String::from_utf8(out.get_output().stdout.clone()).expect("UTF-8")
}

#[test]
fn a_hard_real_time_task() {
    insta::assert_snapshot!(story_of(busiest(|task| task.metrics.class == "RT0")));
}

#[test]
fn an_ordinary_task_that_is_evicted() {
    insta::assert_snapshot!(story_of(evicted()));
}

#[test]
fn a_kernel_thread() {
    insta::assert_snapshot!(story_of(busiest(|task| task.metrics.class == "kernel")));
}

#[test]
fn an_unknown_task_is_told_what_to_do() {
    artis(&["explain", "4194303", "--replay", RECORDING])
        .assert()
        .code(5)
        .stderr(predicate::str::contains("thread 4194303 is not in the recording"))
        .stderr(predicate::str::contains("scx_artis report"));
    artis(&["explain", "0", "--replay", RECORDING]).assert().code(2);
    artis(&["explain", "1", "--replay", "Cargo.toml"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("is no recording"));
}

#[test]
fn as_json_there_are_the_figures_too() {
    let pid = evicted();
    let out = artis(&["explain", &pid.to_string(), "--replay", RECORDING, "--json"]).assert();
    let story: Value = serde_json::from_slice(&out.success().get_output().stdout).expect("JSON");
    assert_eq!((&story["schema"], &story["task"]["pid"]), (&2.into(), &pid.into()));
    assert_eq!(story["prediction"]["rule"], "least");
    let about: Vec<_> = story["paragraphs"].as_array().expect("a list").iter().collect();
    assert!(about.iter().any(|p| p["about"] == "Prediction" && p["text"][0].is_string()));
}

/// The prediction that is told is that of src/bpf/policy/predict.h, which the kernel asked.
#[test]
fn the_prediction_is_that_of_the_scheduler() {
    let mut seen = HashMap::from([(false, 0), (true, 0)]);
    each(|snapshot| {
        for task in snapshot.tasks.values().filter(|task| task.metrics.class == "NRT") {
            let forecast = Forecast::of(&snapshot.begin.policy, &task.history, task.read_ns);
            let calm = forecast.expect("a policy").calm;
            assert_eq!(u64::from(calm), task.metrics.calm, "{task:?}");
            *seen.entry(calm).or_default() += 1;
        }
    });
    assert!(seen.values().all(|n| *n > 10), "both were seen: {seen:?}");
}

#[test]
fn a_trace_can_be_drawn() {
    let out = artis(&["export", RECORDING, "--perfetto", "-"]).assert().success();
    let trace: Value = serde_json::from_slice(&out.get_output().stdout).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let us = |event: &Value, key: &str| event[key].as_f64().unwrap_or_else(|| panic!("{event}"));
    let track = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());

    let mut tracks: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
    let mut ends: HashMap<(String, u64), Vec<f64>> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] != "M") {
        assert!(us(event, "ts") >= 0.0, "{event}");
        match event["ph"].as_str().expect("a kind") {
            "X" => {
                assert!(us(event, "dur") >= 0.0, "{event}");
                let span = (us(event, "ts"), us(event, "ts") + us(event, "dur"));
                tracks.entry(track(event)).or_default().push(span);
            }
            ph @ ("s" | "f") => {
                let id = event["id"].as_u64().expect("an id");
                ends.entry((ph.to_owned(), id)).or_default().push(us(event, "ts"));
            }
            _ => {}
        }
    }
    for (track, mut spans) in tracks {
        // the outer one first
        spans.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
        let mut open: Vec<(f64, f64)> = Vec::new();
        for span in spans {
            open.retain(|outer| outer.1 > span.0);
            let within = open.iter().all(|outer| span.1 <= outer.1 + 0.001);
            assert!(within, "{span:?} crosses {open:?} on {track:?}");
            open.push(span);
        }
    }
    let mut evictions = 0;
    let mut seen = 0;
    each(|snapshot| {
        let fresh = (snapshot.nr_events - seen) as usize;
        seen = snapshot.nr_events;
        let events = snapshot.events.iter().rev().take(fresh);
        evictions += events.filter(|e| matches!(e.what, What::Eviction { .. })).count();
    });
    assert!(evictions > 20, "{evictions}");
    assert_eq!(ends.len(), 2 * evictions, "an arrow for each");
    for ((kind, id), times) in &ends {
        let end = ends.get(&("f".to_owned(), *id)).expect("its end");
        assert!(times.len() == 1 && times[0] <= end[0], "{kind} {id}: {times:?} to {end:?}");
    }
    let named = |name: &str| events.iter().any(|e| e["ph"] == "M" && e["args"]["name"] == name);
    assert!(named("CPU 0 (NRT)") && named("CPU 2 (RT)") && named("cyclictest"));
}
