// SPDX-License-Identifier: GPL-2.0-only
//! Whole runs of small scenes on this machine, under whatever schedules it.

use std::fs;
use std::path::Path;
use std::process::{Command as Plain, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::{BIN, lollobrigida, scene_in};

const SCENE: &str = r#"
why = "to test the command line"

[[group]]
name = "compute"
count = 3
compute_us = 20000

[[group]]
name = "control"
[[group.phase]]
period_us = 5000
burst_us = 500
duration_ms = 40
"#;

fn json_of(text: &[u8]) -> Value {
    serde_json::from_slice(text).expect("JSON")
}

#[test]
fn a_run_shows_its_groups_and_leaves_whole_files() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let file = |name: &str| dir.path().join(name).display().to_string();
    let (json, csv, html) = (file("r.json"), file("r.csv"), file("r.html"));
    lollobrigida(&["run", &scene, "--json", &json, "--csv", &csv, "--html", &html])
        .success()
        .stdout(contains("compute").and(contains("control")).and(contains("makespan")));
    let run = json_of(&fs::read(&json).expect("read"));
    assert_eq!(run["scene"], "mine");
    assert_eq!(run["tasks"].as_array().expect("tasks").len(), 4);
    assert_eq!(fs::read_to_string(&csv).expect("read").lines().count(), 5);
    assert!(fs::read_to_string(&html).expect("read").trim_end().ends_with("</html>"));
    assert_eq!(fs::read_dir(dir.path()).expect("listed").count(), 4, "nothing is left behind");
}

#[test]
fn json_on_stdout_is_alone_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let done = lollobrigida(&["run", &scene, "--json"]).success();
    assert_eq!(json_of(&done.get_output().stdout)["schema"], 1);
    lollobrigida(&["run", &scene, "--quiet"]).success().stdout("").stderr("");
}

#[test]
fn default_against_itself_is_a_comparison() {
    if fs::read_to_string("/sys/kernel/sched_ext/state").is_ok_and(|s| s.trim() != "disabled") {
        return; // a foreign scheduler is in charge, which is refused
    }
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let args = ["compare", &scene, "--under", "default", "--under", "default", "--runs", "2"];
    let done = lollobrigida(&[&args[..], &["--json"]].concat()).success();
    let all = json_of(&done.get_output().stdout);
    assert_eq!(all["unders"], serde_json::json!(["default", "default (2)"]));
    for runs in all["runs"].as_array().expect("runs") {
        assert_eq!(runs.as_array().expect("runs").len(), 2);
    }
    let titles = contains("default (2)").and(contains("ratio"));
    lollobrigida(&[&args[..], &["--order", "random"]].concat()).success().stdout(titles);
}

#[test]
fn several_runs_of_one_are_summed_up() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let done = lollobrigida(&["run", &scene, "--runs", "3", "--warmup", "1", "--json"]).success();
    let all = json_of(&done.get_output().stdout);
    assert_eq!(all["runs"][0].as_array().expect("runs").len(), 3);
}

#[test]
fn a_run_that_its_limit_cuts_is_1_and_shown() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), &SCENE.replace("20000", "60000000"));
    let json = dir.path().join("r.json").display().to_string();
    let done = lollobrigida(&["run", &scene, "--limit", "0.2", "--json", &json])
        .code(1)
        .stdout(contains("compute"));
    let run = json_of(&fs::read(&json).expect("read"));
    let cut: Vec<_> =
        run["tasks"].as_array().expect("tasks").iter().filter(|t| !t["cut"].is_null()).collect();
    // whether the fourth, of 40 ms, finishes is for the machine to say
    assert_eq!(cut.iter().filter(|t| t["group"] == 0).count(), 3);
    assert!(cut.iter().all(|t| t["cut"] == "the limit of 200ms"), "{cut:?}");
    let told = format!("{} tasks did not finish", cut.len());
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains(&told), "{told}");
}

/// Has the process had more than 5 ticks of user time?
fn computes(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // utime is field 14, and the 12th behind the name in brackets
    let ticks =
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(11)?.parse().ok());
    ticks.is_some_and(|ticks: u64| ticks > 5)
}

#[test]
fn a_signal_ends_it_with_130_and_leaves_nothing() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let dir = tempfile::tempdir().expect("a directory");
        let scene = scene_in(dir.path(), &SCENE.replace("20000", "60000000"));
        let json = dir.path().join("r.json");
        let mut child = Plain::new(BIN)
            .args(["run", &scene, "--json"])
            .arg(&json)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let me = child.id();
        let tasks = || fs::read_to_string(format!("/proc/{me}/task/{me}/children")).expect("/proc");
        // not before the start: ticks of user time only come with computing
        while tasks().split_whitespace().count() < 4 || !tasks().split_whitespace().any(computes) {
            assert!(child.try_wait().expect("asked").is_none(), "it ended too early");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pids = tasks();
        kill(Pid::from_raw(me.cast_signed()), signal).expect("told");
        let began = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("asked") {
                break status;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it does not listen to {signal}");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(130), "{signal}");
        assert_eq!(json_of(&fs::read(&json).expect("read"))["cut"], true);
        assert_eq!(
            fs::read_dir(dir.path()).expect("listed").count(),
            2,
            "something is left behind"
        );
        for pid in pids.split_whitespace() {
            assert!(!Path::new("/proc").join(pid).join("exe").exists(), "task {pid} runs still");
        }
    }
}
