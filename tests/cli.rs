// SPDX-License-Identifier: GPL-2.0-only
//! The command line as users meet it: words and exit codes. Nothing here starts
//! a scheduler, so it runs anywhere, as root or not, with or without sched_ext.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

fn artis(args: &[&str]) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_artis"));
    command.args(args).assert()
}

/// `{online}` and `{beyond}` of tests/config.
fn fill_in(text: &str) -> String {
    let read = |name: &str| {
        let path = Path::new("/sys/devices/system/cpu").join(name);
        fs::read_to_string(path).expect("sysfs").trim().to_owned()
    };
    let highest = |list: &str| -> usize {
        list.rsplit([',', '-']).next().and_then(|cpu| cpu.parse().ok()).expect("a CPU list")
    };
    let beyond = highest(&read("possible")) + 1;
    text.replace("{online}", &read("online")).replace("{beyond}", &beyond.to_string())
}

/// The values of all lines that begin with `key`.
fn values(case: &str, key: &str) -> Vec<String> {
    case.lines().filter_map(|line| line.strip_prefix(key)).map(fill_in).collect()
}

fn words(line: &str) -> Vec<String> {
    match line {
        "" => vec![String::new()],
        line => line.split_whitespace().map(str::to_owned).collect(),
    }
}

#[test]
fn each_wrong_command_line_is_explained() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/invalid");
    let mut cases = 0;
    for entry in fs::read_dir(dir).expect("the cases") {
        let path = entry.expect("a case").path();
        let case = fs::read_to_string(&path).expect("readable");
        let args: Vec<_> = values(&case, "args: ").iter().flat_map(|line| words(line)).collect();
        let code: i32 = values(&case, "exit: ")[0].parse().expect("an exit code");
        let args: Vec<_> = args.iter().map(String::as_str).collect();

        let mut run = artis(&args).code(code);
        for words in values(&case, "says: ") {
            run = run
                .try_stderr(contains(words.as_str()))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        cases += 1;
    }
    assert!(cases >= 20, "only {cases} cases were found");
}

#[test]
fn help_has_options_examples_and_exit_codes() {
    artis(&["--help"])
        .success()
        .stdout(contains("--rt-cpus").and(contains("Examples:")).and(contains("3  preflight")));
    artis(&["-h"]).success().stdout(contains("Exit codes:"));
}

#[test]
fn version_names_the_build() {
    let version = format!("scx_artis {}", env!("CARGO_PKG_VERSION"));
    artis(&["--version"]).success().stdout(contains(version.as_str()).and(contains("linux")));
    artis(&["-V"]).success().stdout(contains(version.as_str()));
}

#[test]
fn statistics_are_described() {
    artis(&["--help-stats"]).success().stdout(
        contains("evictions_per_s").and(contains("must be 0")).and(contains("residence_max_us")),
    );
    // machine, CPUs, tasks, causes, events, losses
    for words in
        ["rt_cpu_list", "running_comm", "wait_p99_us", "top_cause", "Event eviction", "over_budget"]
    {
        artis(&["--help-stats"]).success().stdout(contains(words));
    }
}

#[test]
fn calls_are_printed_with_overrides() {
    artis(&["--print-calls"]).success().stdout(
        contains("getpid").and(contains("clock_nanosleep")).and(contains("every other call")),
    );
    artis(&["--print-calls", "--call", "getrandom=harmless"])
        .success()
        .stdout(contains("getrandom"));
    artis(&["--print-calls", "--strict"]).success().stdout(contains("getpid").not());
}

#[test]
fn check_judges_and_changes_nothing() {
    let run = artis(&["--check"]);
    let code = run.get_output().status.code();
    assert!(matches!(code, Some(0 | 3)), "{code:?}");
    run.stdout(contains("sched_ext").and(contains("isolation")).and(contains("preemption")));
}

#[test]
fn a_wrong_configuration_comes_before_preflight() {
    // exit code 2, not 3, wherever this runs
    artis(&["--check", "--rt-cpus", "2000"]).code(2);
    artis(&["--check", "--rt-cpus", &fill_in("{beyond}")]).code(2);
}

#[test]
fn ctl_is_a_command_of_its_own() {
    artis(&["ctl", "--help"])
        .success()
        .stdout(contains("rt-cpus").and(contains("Only root")).and(contains("Examples:")));
    artis(&["--help"]).success().stdout(contains("Commands:").and(contains("ctl")));
    artis(&["--rt-cpus", "1", "ctl", "get"]).code(2).stderr(contains("cannot be used with"));

    if Path::new(scx_artis::control::SOCKET).exists() {
        return; // a scheduler is in charge of this machine: leave it alone
    }
    for args in [
        &["get"][..],
        &["get", "--json"],
        &["rule", "list"],
        &["set", "predict-k", "3"],
        &["rt-cpus", "1"],
    ] {
        artis(&[&["ctl"], args].concat()).code(3).stderr(contains("no scx_artis runs"));
    }
}

#[test]
fn stdout_may_be_closed() {
    // as in `scx_artis --print-calls | head -0`: an error, not a panic
    let status = std::process::Command::new("sh")
        .args(["-c", "exec \"$0\" --print-calls >&-", env!("CARGO_BIN_EXE_scx_artis")])
        .output()
        .expect("sh");
    let stderr = String::from_utf8_lossy(&status.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
}
