// SPDX-License-Identifier: GPL-2.0-only
//! The page of a recording in a real browser: nothing fetched, nothing complained of, every chart
//! to be seen on wide and narrow, bright and dark screens and on paper.
use std::path::Path;
use std::sync::Arc;

use assert_cmd::Command;
use page::browser::{everywhere, faults, launch, open};
use scx_artis::model::{CpuMetrics, Task, TaskMetrics};
use scx_artis::outlets::report::{self, Known, Recorded, Share, Span, Times};

const CHARTS: [&str; 5] = ["latency", "shares", "evictions", "arrival", "residence"];

/// The page of the recording in tests/fixtures.
fn fixture() -> String {
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/small.artis");
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_artis"));
    let out = command.args(["report", "-", "--from"]).arg(recording).assert().success();
    String::from_utf8(out.get_output().stdout.clone()).unwrap()
}

#[test]
fn a_recording_is_seen_everywhere() {
    let browser = launch();
    let page = open(&browser, &fixture());
    everywhere(&page, &CHARTS);
    let seen = page.screen(1280, false);
    assert_eq!(seen.heading, "What scx_artis did");
    for text in
        ["small.artis, recorded on 20", "call openat", "cyclictest/", "SCHED_FIFO", "predict-c-us"]
    {
        assert!(seen.text.contains(text), "{text}");
    }
    assert!(!seen.text.contains("Before believing"), "nothing was lost");
}

fn cpu(is_rt: bool) -> CpuMetrics {
    let kind = if is_rt { "RT" } else { "NRT" };
    CpuMetrics { kind: kind.into(), is_rt: is_rt.into(), ..CpuMetrics::default() }
}

fn known(pid: u64, comm: &str, class: &str) -> Known {
    let metrics = TaskMetrics {
        pid,
        comm: comm.into(),
        class: class.into(),
        policy: "FIFO".into(),
        waits: 9,
        wait_max_us: 90.0,
        wait_max_at_s: 0.5,
        wait_max_after: comm.into(),
        ..TaskMetrics::default()
    };
    let task = Task { metrics, waits: Times::one(80.0).hist, ..Task::default() };
    Known { task: Arc::new(task), run_s: pid as f64, on_rt_s: 0.0, ended: pid % 2 == 1 }
}

/// As many of all as one asks for.
fn made(cpus: usize, spans: usize, tasks: u64, comm: &str) -> Recorded {
    let mut recorded = Recorded { intervals: spans as u64, ..Recorded::default() };
    for nth in 0..spans {
        let wave = (nth % 50) as f64;
        let share = Share { rt_pct: wave, ext_pct: 100.0 - 2.0 * wave };
        let mut span = Span { begin_s: nth as f64, end_s: nth as f64 + 1.0, ..Span::default() };
        span.shares = (0..cpus).map(|cpu| (cpu, share)).collect();
        span.evictions = 100.0 + wave;
        span.causes = (0..9).map(|i| (format!("{comm} {i}"), wave / 9.0)).collect();
        span.residence_us_per_s = wave;
        span.arrival_us = Some((wave + 1.0, 10.0 * wave + 1.0));
        span.wakeups = (0..20).map(|pid| (pid, Times::one(wave + 1.0))).collect();
        recorded.spans.push(span);
    }
    recorded.machine.cpus = (0..cpus).map(|id| (id, cpu(id >= cpus / 2))).collect();
    let class = |pid| if pid < 20 { "RT0" } else { "NRT" };
    recorded.tasks = (0..tasks).map(|pid| (pid, known(pid, comm, class(pid)))).collect();
    recorded
}

#[test]
fn names_are_text() {
    let browser = launch();
    let hostile = "</title><script>console.error(1)</script>\"'><img src=x onerror=alert(1)>&lt;";
    let mut recorded = made(2, 3, 21, hostile);
    let begin = Arc::make_mut(&mut recorded.begin);
    (begin.kernel, begin.program) = (hostile.into(), hostile.into());
    begin.policy.insert(hostile.into(), hostile.into());
    recorded.notes = vec![(1.0, hostile.into())];
    recorded.lost.ring = 3;
    let page = open(&browser, &report::page(&recorded, hostile).unwrap());
    everywhere(&page, &CHARTS);
    let seen = page.screen(1280, false);
    assert!(seen.text.contains(hostile));
    assert!(seen.text.contains("3 records found no room"));
    assert!(seen.text.contains("8 more tasks, whose worst case is shorter"));
}

#[test]
fn a_huge_recording_still_fits() {
    let browser = launch();
    let html = report::page(&made(256, 799, 5_000, "worker"), "huge.artis").unwrap();
    assert!(html.len() < 6 << 20, "{} bytes", html.len());
    let page = open(&browser, &html);
    for (width, dark) in [(1280, false), (360, true)] {
        assert_eq!(faults(&page.screen(width, dark)), [""; 0]);
    }
    let seen = page.screen(1280, false);
    assert!(seen.text.contains("224 more CPUs are in the table only"));
    assert!(seen.text.contains("4600 more rows are in the JSON and CSV forms"));
}

#[test]
fn a_recording_of_nothing_is_a_page() {
    let browser = launch();
    let page = open(&browser, &report::page(&made(1, 1, 0, ""), "x").unwrap());
    assert_eq!(faults(&page.screen(360, false)), [""; 0]);
    assert_eq!(page.told(), [""; 0]);
    assert!(report::page(&Recorded::default(), "x").unwrap().contains("Tasks"));
}

/// Pictures for one's own eyes.
#[test]
#[ignore = "writes pictures to target/tmp/pictures and checks nothing"]
fn pictures() {
    let browser = launch();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pictures");
    for (name, html) in [
        ("recording", fixture()),
        ("huge-recording", report::page(&made(256, 799, 5_000, "worker"), "huge.artis").unwrap()),
    ] {
        open(&browser, &html).pictures(&directory, name);
        std::fs::write(directory.join(format!("{name}.html")), &html).unwrap();
    }
}
