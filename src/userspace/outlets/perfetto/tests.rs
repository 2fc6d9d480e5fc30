// SPDX-License-Identifier: GPL-2.0-only
//! Traces of events made by hand; tests/recorded/story.rs has one of a real recording.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;

use super::trace::TRACKS;
use super::*;
use crate::model::{CpuMetrics, Event, Metrics, Snapshot, Task, TaskMetrics, What};
use crate::outlets::whole::Interval;

fn event(at_s: f64, pid: u64, what: What) -> Event {
    Event { at_s, pid, comm: format!("task{pid}"), what }
}

fn run(at_s: f64, pid: u64, cpu: u64, run_us: f64) -> Event {
    event(at_s, pid, What::Run { cpu, run_us, rt: pid == 9 })
}

fn snapshot(events: Vec<Event>) -> Snapshot {
    let cpu = |kind: &str, is_rt| CpuMetrics { kind: kind.into(), is_rt, ..CpuMetrics::default() };
    let leader = TaskMetrics { pid: 7, tgid: 5, ..TaskMetrics::default() };
    Snapshot {
        machine: Metrics {
            uptime_s: 2.0,
            interval_s: 1.0,
            cpus: [(0, cpu("NRT", 0)), (1, cpu("RT", 1))].into(),
            ..Metrics::default()
        },
        tasks: [(7, Arc::new(Task { metrics: leader, ..Task::default() }))].into(),
        nr_events: events.len() as u64,
        events: VecDeque::from(events),
        ..Snapshot::default()
    }
}

fn trace(events: Vec<Event>) -> (Vec<Value>, Told) {
    let snapshot = snapshot(events);
    let mut bytes = Vec::new();
    let mut trace = Trace::new(&mut bytes, &snapshot.begin).expect("into memory");
    trace.interval(&Interval::since(&snapshot, 0)).expect("into memory");
    let told = trace.finish().expect("into memory");
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    (value["traceEvents"].as_array().expect("a list").clone(), told)
}

/// (track, name, begin, duration) of the slices on CPU tracks.
fn slices(events: &[Value]) -> Vec<(u64, String, f64, f64)> {
    let cpus = events.iter().filter(|e| e["ph"] == "X" && e["pid"] == (1 << 22) + 1);
    let number = |v: &Value| v.as_f64().expect("a number");
    let cpu = |e: &Value| e["tid"].as_u64().expect("an id") - (1 << 22) - 2;
    let name = |e: &Value| e["name"].as_str().expect("a name").to_owned();
    cpus.map(|e| (cpu(e), name(e), number(&e["ts"]), number(&e["dur"]))).collect()
}

#[test]
fn runs_never_cross_on_their_track() {
    let (events, told) = trace(vec![
        run(1.000_100, 7, 1, 100.0),
        // by another clock it began 5 us before that ended
        run(1.000_150, 9, 1, 55.0),
        // and this one ended before
        run(1.000_140, 7, 1, 10.0),
        run(1.000_200, 7, 0, 20.0),
    ]);
    assert_eq!(told.runs, 4);
    assert_eq!(
        slices(&events),
        [
            (1, "task7/7".into(), 1_000_000.0, 100.0),
            (1, "task9/9".into(), 1_000_100.0, 50.0),
            (0, "task7/7".into(), 1_000_180.0, 20.0),
        ]
    );
}

#[test]
fn an_eviction_has_an_arrow_between_the_cpus() {
    let what = What::Eviction {
        cause: "call write".into(),
        from: 1,
        to: 0,
        left_us: 2.0,
        arrived_us: 12.0,
    };
    let (events, _) = trace(vec![event(1.5, 7, what)]);
    let at = |ph: &str| events.iter().find(|e| e["ph"] == ph).expect(ph).clone();
    let (tail, head) = (at("s"), at("f"));
    assert_eq!((&tail["id"], &head["bp"]), (&head["id"], &Value::from("e")));
    assert_eq!(
        slices(&events),
        [
            (1, "eviction of task7/7: call write".into(), 1_499_988.0, 2.0),
            (0, "task7/7 arrives".into(), 1_500_000.0, 0.0),
        ]
    );
    for (arrow, slice) in [(tail, 0), (head, 1)] {
        let slice = events.iter().filter(|e| e["ph"] == "X").nth(slice).expect("a slice");
        assert_eq!((&arrow["ts"], &arrow["tid"]), (&slice["ts"], &slice["tid"]), "it hangs on one");
    }
}

#[test]
fn tracks_have_names_and_counters_are_there() {
    let what = What::Move { why: "taken_rt".into(), from: 0, to: 1, wait_us: 3.0 };
    let note = Event { pid: 0, ..event(1.7, 0, What::Note { text: "K is 4".into() }) };
    let (events, told) = trace(vec![event(1.5, 7, what), event(1.6, 8, What::Exit), note]);
    assert_eq!((told.moves, told.runs), (1, 0));
    let named = |name: &str| events.iter().any(|e| e["ph"] == "M" && e["args"]["name"] == name);
    assert!(named("CPU 0 (NRT)") && named("CPU 1 (RT)") && named("task7") && named("task8"));
    let thread = events.iter().find(|e| e["args"]["name"] == "task7").expect("a name");
    assert_eq!((&thread["pid"], &thread["tid"]), (&Value::from(5), &Value::from(7)));
    let counters: Vec<_> = events.iter().filter(|e| e["ph"] == "C").collect();
    assert!(counters.iter().all(|c| c["ts"] == 1e6), "from the interval's begin on");
    assert_eq!(counters.len(), 2 + 1 + 1, "shares of each CPU, evictions of RT ones, and all");
    assert!(events.iter().any(|e| e["name"] == "task7/7 came: taken by RT"));
    assert!(events.iter().any(|e| e["name"] == "K is 4" && e["s"] == "g"));
}

#[test]
fn what_is_absent_is_said() {
    let told = Told { runs: 1, evictions: 2, moves: 0, left_out: 0 };
    assert_eq!(
        sum(&told, "x"),
        "x has 1 run, 2 evictions and no moves; open it at ui.perfetto.dev"
    );
    let text = sum(&Told { left_out: 3, ..Told::default() }, "x");
    assert!(text.contains("--runs") && text.contains("--events") && text.contains("3 events"));
}

#[test]
fn tracks_of_tasks_without_end_are_forgotten() {
    // a forged recording may name any CPU, too
    let runs =
        |from: u64| (from..from + 100_000).map(|nr| run(1.5, nr, nr % 50_000, 1.0)).collect();
    let mut out = Vec::new();
    let mut trace = Trace::new(std::io::sink(), &Default::default()).expect("into nothing");
    for from in (1..=6).map(|turn| turn * 1_000_000) {
        let snapshot = snapshot(runs(from));
        trace.interval(&Interval::since(&snapshot, 0)).expect("into nothing");
        out.push(trace.tracks());
    }
    assert!(out.iter().all(|tracks| *tracks <= TRACKS + 200_000), "{out:?}");
    assert!(out.iter().any(|tracks| *tracks > TRACKS), "nothing had to be forgotten: {out:?}");
    assert_eq!(trace.finish().expect("into nothing").runs, 600_000);
}
