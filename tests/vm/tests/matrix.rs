// SPDX-License-Identifier: GPL-2.0-only
//! Runs the scenarios on each kernel, in guests. Tests are named like `6.18::zero_bodies`;
//! arguments filter as usual.
//!
//! ARTIS_VM_KERNELS="6.18 7.0-rt" and ARTIS_VM_SCENARIOS="tally ctl" restrict the kernels and the
//! scenarios (one that is named twice runs twice in each round), ARTIS_VM_NIGHTLY=1 runs all scenarios
//! on each kernel, ARTIS_VM_REPEAT is the number of rounds, in each of which every trial runs once (1),
//! ARTIS_VM_LIMIT_S the time after which no trial begins (4200), ARTIS_VM_LOGS the folder for what
//! guests print (target/vm-logs), ARTIS_VM_REPORT a file for the figures of all rounds. The programs are
//! those of cargo's profile that this test was built with; scx_artis has to be built before (scripts/test
//! does).

use std::env;
use std::iter::repeat_n;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::sync::Arc;
use std::time::Duration;

use artis_vm::host::lanes::Lanes;
use artis_vm::host::trial::{Guests, Verdict};
use artis_vm::scenarios::{ALL, Scenario, Scope};
use libtest_mimic::{Arguments, Completion, Trial};

/// In the words of scripts/kernels, see [`Scope`]. They do not float with the date; what Debian
/// offers as its newest is for the nightly tier.
const KERNELS: [&str; 4] = ["6.18", "7.0-rt", "7.3", "floor"];
const NEWEST: &str = "newest";
/// See ARTIS_VM_LIMIT_S.
const LIMIT_S: u64 = 4200;
/// Exit code of scripts/kernels for an absent floor kernel.
const NO_FLOOR: i32 = 3;

fn main() {
    let mut args = Arguments::from_args();
    let guest = PathBuf::from(env!("CARGO_BIN_EXE_artis-guest"));
    let guests = match guests(&guest) {
        Ok(guests) => Arc::new(guests),
        Err(e) => {
            eprintln!("{e:#}");
            exit(2);
        }
    };
    let mut scenarios: Vec<&'static Scenario> =
        ALL.iter().flat_map(|s| repeat_n(s, times("ARTIS_VM_SCENARIOS", s.name))).collect();
    scenarios.sort_by_key(|s| s.boot); // those that share guests together, else as listed
    let lanes = Arc::new(Lanes::default());
    let mut trials = Vec::new();
    let newest = nightly().then_some(NEWEST);
    let kernels = KERNELS.into_iter().chain(newest).filter(|k| times("ARTIS_VM_KERNELS", k) > 0);
    let kernels: Vec<_> = kernels.map(|k| (k, args.list || available(k, &guest))).collect();
    let rounds = number("ARTIS_VM_REPEAT", 1);
    for round in 1..=rounds {
        for (kernel, fit) in &kernels {
            for s in scenarios.iter().filter(|s| runs(s.scope, kernel)) {
                let turn = (Arc::clone(&lanes), trials.len());
                let trial = trial(kernel, s, &guests, turn).with_ignored_flag(!fit);
                trials.push(if rounds > 1 { trial.with_kind(format!("{round}")) } else { trial });
            }
        }
    }
    let whole = env::var_os("ARTIS_VM_SCENARIOS").is_none()
        && KERNELS.iter().all(|k| times("ARTIS_VM_KERNELS", k) > 0);
    let last = (whole && args.filter.is_none()).then(|| counters(&guests));
    let mut failed = false;
    for trials in [trials, last.into_iter().collect()] {
        if !trials.is_empty() {
            args.test_threads = Some(trials.len()); // each waits for its turn
            failed |= libtest_mimic::run(&args, trials).has_failed();
        }
    }
    if !args.list {
        print!("{}", guests.finish());
    }
    if let Some(path) = env::var_os("ARTIS_VM_REPORT")
        && let Err(e) = std::fs::write(&path, guests.tables())
    {
        eprintln!("{}: {e}", path.display());
        failed = true;
    }
    exit(if failed { 101 } else { 0 });
}

fn guests(guest: &Path) -> anyhow::Result<Guests> {
    let profile = guest.parent().and_then(Path::file_name);
    let profile = profile.map_or_else(|| "release".into(), |d| d.to_string_lossy().into_owned());
    let options = vec!["--cpus".into(), "4".into(), "--profile".into(), profile];
    let target = guest.ancestors().nth(2).unwrap_or(root());
    let logs = env::var_os("ARTIS_VM_LOGS").map_or(target.join("vm-logs"), PathBuf::from);
    let limit = Duration::from_secs(number("ARTIS_VM_LIMIT_S", LIMIT_S));
    Guests::new(root().into(), options, logs, limit)
}

fn runs(scope: Scope, kernel: &str) -> bool {
    let named = env::var_os("ARTIS_VM_SCENARIOS").is_some();
    match scope {
        Scope::Floor => kernel == "floor",
        Scope::Everywhere => true,
        Scope::NotRt => kernel != KERNELS[1],
        Scope::Named => named,
        _ if nightly() => true,
        Scope::Both => KERNELS[..2].contains(&kernel),
        Scope::First => kernel == KERNELS[0],
        Scope::Nightly => named,
    }
}

fn nightly() -> bool {
    env::var_os("ARTIS_VM_NIGHTLY").is_some()
}

/// What this variable says, or `default` where it is not set; what is no number ends the program.
fn number(name: &str, default: u64) -> u64 {
    let Ok(text) = env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| {
        eprintln!("{name}={text}: not a number");
        exit(2);
    })
}

/// How often `list` names it; once, where it is not set.
fn times(list: &str, name: &str) -> usize {
    env::var(list).map_or(1, |v| v.split_whitespace().filter(|k| *k == name).count())
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Only the floor kernel may be absent; it is said aloud.
fn available(kernel: &str, guest: &Path) -> bool {
    for program in ["scx_artis", "lollobrigida"] {
        let program = guest.with_file_name(program);
        if !program.exists() {
            eprintln!("{} is missing: build it first, with the same profile", program.display());
            exit(2);
        }
    }
    let found = Command::new(root().join("scripts/kernels")).args(["path", kernel]).output();
    match found {
        Ok(o) if o.status.code() == Some(NO_FLOOR) => {
            let why = String::from_utf8_lossy(&o.stderr);
            eprintln!("SKIPPED: no test runs on the kernel '{kernel}'\n{why}");
            false
        }
        _ => true,
    }
}

fn trial(
    kernel: &'static str,
    scenario: &'static Scenario,
    guests: &Arc<Guests>,
    (lanes, number): (Arc<Lanes>, usize),
) -> Trial {
    let guests = Arc::clone(guests);
    Trial::ignorable_test(format!("{kernel}::{}", scenario.name), move || {
        let _turn = lanes.turn(scenario, number);
        match guests.trial(kernel, scenario).map_err(|e| format!("{e:#}"))? {
            Verdict::Passed => Ok(Completion::Completed),
            Verdict::Skipped(why) => Ok(Completion::ignored_with(why)),
            Verdict::Failed(text) => Err(text.into()),
        }
    })
}

/// After all the others: each counter has counted in one of them.
fn counters(guests: &Arc<Guests>) -> Trial {
    let guests = Arc::clone(guests);
    Trial::test("counters", move || {
        guests.ensure_all_counted().map_err(|e| format!("{e:#}").into())
    })
}
