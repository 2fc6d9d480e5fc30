// SPDX-License-Identifier: GPL-2.0-only
//! The command line as users meet it: words and exit codes. Nothing here runs a task or
//! starts a scheduler.

use std::fs;
use std::path::Path;
use std::process::Command as Plain;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

use crate::{lollobrigida, scene_in};

/// One task that computes for a while and one that keeps a period.
const SCENE: &str = r#"
why = "to test the command line"
good = "nothing to see"
rt_cpus = "0"

[[group]]
name = "compute"
count = 3
compute_us = 20000

[[group]]
name = "control"
sched = "FIFO"
priority = 10
cpus = "0"
[[group.phase]]
period_us = 5000
burst_us = 500
duration_ms = 40
"#;

fn stdout_of(args: &[&str]) -> String {
    let done = lollobrigida(args).success();
    String::from_utf8_lossy(&done.get_output().stdout).into_owned()
}

#[test]
fn help_tells_the_exit_codes() {
    for flag in ["-h", "--help"] {
        let told = contains("Exit codes:").and(contains("130  interrupted"));
        lollobrigida(&[flag]).success().stdout(told);
    }
}

#[test]
fn bad_usage_is_2() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let absent = dir.path().join("absent/r.json").display().to_string();
    for (args, words) in [
        (vec!["run"], "<SCENE>"),
        (vec!["run", &scene, "--scale", "0"], "not above 0"),
        (vec!["run", &scene, "--scale", "1", "--short"], "cannot be used with"),
        (vec!["run", &scene, "--json", "--csv"], "would mix on standard output"),
        (vec!["run", &scene, "--json", &absent], "cannot write"),
        (vec!["run", "anexb"], "did you mean annexb?"),
        (vec!["scenes", "anexb"], "lollobrigida scenes"),
        (vec!["compare", &scene], "two schedulers or more"),
        (vec!["compare", &scene, "--under", "default"], "repeat --under"),
        (vec!["compare", &scene, "--under", "default", "--under", "scx_absent"], "cargo install"),
        (vec!["rehearse", &scene, "--under", "default:-v"], "takes no arguments"),
    ] {
        lollobrigida(&args).code(2).stderr(contains(words)).stdout("");
    }
}

#[test]
fn every_wrong_under_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let args = ["compare", &scene, "--under", "scx_absent_1", "--under", "scx_absent_2"];
    lollobrigida(&args).code(2).stderr(contains("absent_1").and(contains("absent_2")));
}

#[test]
fn check_tells_every_mistake_of_every_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    lollobrigida(&["check", &scene, "annexb"])
        .success()
        .stdout(contains("4 tasks in 2 groups").and(contains("annexb: sound")));
    let wrong = dir.path().join("wrong.toml").display().to_string();
    fs::write(&wrong, SCENE.replace("count", "cout").replace("FIFO", "FIFA")).expect("written");
    lollobrigida(&["check", &scene, &wrong])
        .code(2)
        .stdout(contains("mine.toml: sound"))
        .stderr(contains("wrong.toml:8").and(contains("wrong.toml:13")).and(contains("count")));
}

#[test]
fn scenes_are_listed_and_printed() {
    let list = stdout_of(&["scenes"]);
    let names: Vec<&str> = list.lines().filter_map(|l| Some(l.split_once(" (")?.0)).collect();
    assert!(names.contains(&"annexb"), "{list}");
    for name in names.iter().filter(|name| !name.starts_with([' ', '-'])) {
        assert!(!stdout_of(&["scenes", name]).is_empty(), "{name}");
    }
}

#[test]
fn an_old_scene_becomes_a_new_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let (old, new) = (dir.path().join("old.scn"), dir.path().join("new.toml"));
    fs::write(&old, stdout_of(&["scenes", "annexb"])).expect("written");
    let (old, new) = (old.display().to_string(), new.display().to_string());
    lollobrigida(&["convert", &old, "-o", &new]).success().stdout("");
    assert_eq!(stdout_of(&["convert", &old]), fs::read_to_string(&new).expect("read"));
    let tasks = |scene: &str| stdout_of(&["check", scene]).replace(scene, "");
    assert_eq!(tasks(&old), tasks(&new));
}

#[test]
fn a_rehearsal_tells_tasks_order_time_and_rights() {
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    let fake = dir.path().join("scx_fake");
    // it would leave a trace if it were started
    fs::write(&fake, "#!/bin/sh\ntouch \"$0.started\"\n").expect("written");
    Plain::new("chmod").arg("+x").arg(&fake).status().expect("chmod");
    let under = format!("{}:--on {{rt_cpus}}", fake.display());
    let args = ["rehearse", &scene, "--under", "default", "--under", &under, "--runs", "2"];
    let text = stdout_of(&[&args[..], &["--loops-per-us", "0.1"]].concat());
    assert!(!dir.path().join("scx_fake.started").exists(), "it was started");
    let (told, _) = text.split_once("\nrights\n").expect("rights");
    let told = told.replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!("rehearsal", told);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("- starting {under}: ")), "{text}");
    assert!(words.contains("- group control for real-time priority 10"), "{text}");
}

#[test]
fn short_makes_a_long_scene_short() {
    let dir = tempfile::tempdir().expect("a directory");
    let long =
        SCENE.replace("20000", "600000000").replace("duration_ms = 40", "duration_ms = 60000");
    let text =
        stdout_of(&["rehearse", &scene_in(dir.path(), &long), "--short", "--loops-per-us", "0.1"]);
    let expected = text.lines().find(|l| l.starts_with("expected: ")).expect("a line");
    assert!(expected.starts_with("expected: 500\u{a0}ms a run"), "{expected}");
    assert!(text.contains("- short: "), "{text}");
}

#[test]
fn without_the_kernels_help_a_scheduler_is_refused_with_3() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        return; // tests/vm starts schedulers where they can be started
    }
    let dir = tempfile::tempdir().expect("a directory");
    let scene = scene_in(dir.path(), SCENE);
    lollobrigida(&["compare", &scene, "--under", "default", "--under", "/bin/true"])
        .code(3)
        .stderr(contains("no sched_ext"))
        .stdout("");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout_of(&["completions", shell]).contains("rehearse"), "{shell}");
    }
}

#[test]
fn the_manual_page_is_the_one_in_the_repository() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/lollobrigida.1");
    let page = stdout_of(&["man"]);
    if std::env::var_os("LOLLOBRIGIDA_UPDATE_MAN").is_some() {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(&path, &page).expect("written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == page,
        "docs/man/lollobrigida.1 is not what 'lollobrigida man' prints: look at the difference, \
         then run this test with LOLLOBRIGIDA_UPDATE_MAN=1"
    );
}

#[test]
fn the_manual_page_is_sound_roff() {
    let mut groff = Command::new("groff");
    let done =
        groff.args(["-man", "-ww", "-Tutf8", "-Kutf8", "-z"]).write_stdin(stdout_of(&["man"])).ok();
    match done {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stderr), ""),
        Err(error) => {
            let absent = Plain::new("groff").arg("--version").output().is_err();
            assert!(absent, "{error}"); // a machine without groff cannot tell
        }
    }
}
