// SPDX-License-Identifier: GPL-2.0-only
//! The systemd unit: that systemd takes it, how little it leaves the daemon, and what it relies on.
//! What the daemon does within these limits is shown in a VM (scenarios `service`,
//! `service_fails`, `notify`).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::libc::O_NONBLOCK;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

/// What `systemd-analyze security` may come to at most, of 10.
const EXPOSURE_MAX: f64 = 2.5;
/// After so long the kernel ejects a scheduler under which a task waits (`--watchdog-ms`, its
/// highest value), s.
const EJECTED_AFTER_S: u32 = 30;
/// What a start takes at most where it works, s: measured 3 in emulation.
const START_S: u32 = 10;
/// For what must happen.
const PATIENCE: Duration = Duration::from_secs(60);

fn unit() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/scx_artis.service");
    fs::read_to_string(path).expect("the unit")
}

/// Values of a key, comments left out.
fn values<'u>(unit: &'u str, key: &str) -> Vec<&'u str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// The last one, as a number.
fn number(unit: &str, key: &str) -> u32 {
    let value = values(unit, key).pop().unwrap_or_else(|| panic!("no {key}"));
    value.parse().unwrap_or_else(|_| panic!("{key}={value}"))
}

/// Has systemd-analyze look at this unit, as if it were installed with our program.
fn analyze(unit: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("scx_artis.service");
    let unit = unit.replace("/usr/bin/scx_artis", env!("CARGO_BIN_EXE_scx_artis"));
    fs::write(&file, unit).expect("written");
    Command::new("systemd-analyze")
        .args(args)
        .arg("--no-pager")
        .arg(&file)
        .env("SYSTEMD_COLORS", "0")
        .output()
        .expect("systemd-analyze: scripts/setup installs it, Debian's package is systemd")
}

fn exposure(unit: &str) -> f64 {
    let out = analyze(unit, &["security", "--offline=true"]);
    let text = String::from_utf8_lossy(&out.stdout);
    let line = text.lines().find(|line| line.contains("Overall exposure level"));
    let line = line.unwrap_or_else(|| panic!("no exposure: {out:?}"));
    let figure = line.rsplit(": ").next().and_then(|rest| rest.split(' ').next());
    figure.and_then(|f| f.parse().ok()).unwrap_or_else(|| panic!("no figure: {line}"))
}

/// What `systemd-analyze verify` says against it.
fn complaints(unit: &str) -> Vec<String> {
    let out = analyze(unit, &["verify", "--man=no"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    // one before 253 does not know it, and takes Type=notify, see the unit
    let known =
        |line: &&str| !line.ends_with("Failed to parse service type, ignoring: notify-reload");
    let mut all: Vec<_> = said.lines().filter(known).map(str::to_owned).collect();
    if !out.status.success() {
        all.push(out.status.to_string());
    }
    all
}

#[test]
fn it_exposes_little() {
    let unit = unit();
    let is = exposure(&unit);
    assert!(is <= EXPOSURE_MAX, "exposure {is}, at most {EXPOSURE_MAX}");
    // the figure is of this unit
    let open = unit.replace("CapabilityBoundingSet=", "#").replace("SystemCallFilter=", "#");
    let more = exposure(&open);
    assert!(more > EXPOSURE_MAX, "without two of its limits: {more}");
}

#[test]
fn systemd_takes_it() {
    let unit = unit();
    assert_eq!(complaints(&unit), [""; 0]);
    let wrong = unit.replace("ProtectHome=yes", "ProtectHom=yes");
    assert_ne!(complaints(&wrong), [""; 0], "a word that systemd does not know");
}

#[test]
fn each_word_of_it_is_meant() {
    let unit = unit();
    assert_eq!(values(&unit, "Type"), ["notify", "notify-reload"], "the older one first");
    // src/userspace/exit.rs: bad arguments, an unfit machine
    assert_eq!(values(&unit, "RestartPreventExitStatus"), ["2 3"]);
    assert_eq!(values(&unit, "RuntimeDirectoryPreserve"), ["yes"]);
    // without which an ejected daemon, or one that hangs, would be started for ever
    let restart_s = number(&unit, "RestartSec");
    for each_s in [EJECTED_AFTER_S, number(&unit, "WatchdogSec")] {
        let all_s = number(&unit, "StartLimitBurst") * (START_S + each_s + restart_s);
        let limit_s = number(&unit, "StartLimitIntervalSec");
        assert!(all_s <= limit_s, "starts that end after {each_s} s: {all_s} s, not in {limit_s}");
    }
}

/// The first signal that a service gets may come before its handlers stand.
#[test]
fn a_hangup_while_it_starts_ends_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let rules = dir.path().join("rules.toml");
    mkfifo(&rules, Mode::S_IRWXU).expect("a pipe");
    let online = fs::read_to_string("/sys/devices/system/cpu/online").expect("sysfs");
    let last = online.trim().rsplit([',', '-']).next().unwrap_or_default();
    assert_ne!(last, "0", "this wants two CPUs");
    // under nohup(1) it would ignore the signal anyway
    let mut daemon = Command::new("env")
        .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_scx_artis")])
        .args(["--rt-cpus", last, "--config"])
        .arg(&rules)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let began = Instant::now();
    // it reads its rules, before anything else of note, and waits for them
    let mut pipe = loop {
        match OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&rules) {
            Ok(pipe) => break pipe,
            Err(error) => assert!(began.elapsed() < PATIENCE, "it reads no rules: {error}"),
        }
        assert!(daemon.try_wait().expect("a child").is_none(), "it has ended");
        sleep(Duration::from_millis(2));
    };
    kill(Pid::from_raw(daemon.id().cast_signed()), Signal::SIGHUP).expect("sent");
    sleep(Duration::from_millis(50)); // to die of it
    pipe.write_all(b"banana").expect("it still reads");
    drop(pipe);
    let ended = daemon.wait_with_output().expect("a child");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{}, {said}", ended.status);
    assert!(said.contains("banana") || said.contains("line 1"), "{said}");
}
