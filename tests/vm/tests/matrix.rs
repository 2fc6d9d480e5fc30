// SPDX-License-Identifier: GPL-2.0-only
//! Boots a guest for each (kernel, scenario) and runs `artis-guest scenario` in
//! it. Tests are named like `6.18::zero_bodies`; arguments filter as usual.
//!
//! ARTIS_VM_KERNELS="6.18 newest" restricts the kernels, ARTIS_VM_ALL=1 runs all
//! scenarios on each. The programs are those of cargo's profile that this test
//! was built with; scx_artis has to be built before (scripts/test does).

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use artis_vm::scenarios::{ALL, Scenario, Scope, ShowsNothing};
use artis_vm::{failure, peers};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Kernel, and whether all scenarios run there or the essential ones.
const KERNELS: [(&str, bool); 4] =
    [("6.18", true), ("7.0-rt", true), ("newest", false), ("floor", false)];
/// More than any scenario takes; a guest that hangs is ended.
const TIMEOUT_SECS: &str = "300";
/// Exit code of `artis-guest scenario` for what cannot run in this guest.
const SKIPPED: i32 = 77;
/// So often a guest is booted again that died of the emulator, see [`failure::is_emulators`].
const EMULATOR_RETRIES: u32 = 2;
/// Scenarios that only count what must not be, which no busy host excuses: a failure of theirs is
/// final. The others compare times, of four virtual CPUs on a host that others use, too; they
/// are booted again, as is whatever ended without a verdict, and each failure is printed.
const COUNTED: [&str; 5] =
    ["zero_bodies", "zero_bodies_strict", "preempt_ground_truth", "tally", "task_evictions"];
/// So often a guest is booted at most for one verdict.
const TRIES: u32 = 3;
/// Exit code of scripts/kernels for an absent floor kernel.
const NO_FLOOR: i32 = 3;

fn main() {
    let mut args = Arguments::from_args();
    // a guest has four virtual CPUs: two at once would measure each other
    args.test_threads.get_or_insert(1);
    let guest = PathBuf::from(env!("CARGO_BIN_EXE_artis-guest"));
    let mut trials = Vec::new();
    for (kernel, all) in KERNELS.into_iter().filter(|(k, _)| wanted(k)) {
        let fit = args.list || available(kernel, &guest);
        for s in ALL.iter().filter(|s| runs(s.scope, kernel, all)) {
            trials.push(trial(kernel, s, &guest).with_ignored_flag(!fit));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn runs(scope: Scope, kernel: &str, all: bool) -> bool {
    match scope {
        Scope::Everywhere => true,
        Scope::Full => all || asked_for_all(),
        Scope::Floor => kernel == "floor",
        Scope::First => kernel == KERNELS[0].0,
        Scope::Asked => kernel == KERNELS[0].0 && asked_for_all(),
    }
}

fn asked_for_all() -> bool {
    env::var_os("ARTIS_VM_ALL").is_some()
}

fn wanted(kernel: &str) -> bool {
    env::var("ARTIS_VM_KERNELS").map_or(true, |v| v.split_whitespace().any(|k| k == kernel))
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
            std::process::exit(2);
        }
    }
    let found = Command::new(root().join("scripts/kernels")).args(["path", kernel]).output();
    match found {
        Ok(o) if o.status.code() == Some(NO_FLOOR) => {
            eprintln!("SKIPPED: no test runs on the kernel '{kernel}'\n{}", text(&o.stderr));
            false
        }
        _ => true,
    }
}

fn trial(kernel: &'static str, scenario: &'static Scenario, guest: &Path) -> Trial {
    let profile = profile(guest);
    Trial::ignorable_test(format!("{kernel}::{}", scenario.name), move || {
        let mut tried = 1;
        loop {
            let out = alive(kernel, scenario, &profile)?;
            let verdict = judge(kernel, scenario, &out);
            let Err(failed) = &verdict else { return verdict };
            let open = out.status.code() == Some(ShowsNothing::CODE.into());
            let last = COUNTED.contains(&scenario.name) && !open;
            if last || tried == TRIES {
                return verdict;
            }
            eprintln!(
                "FLAKY? {kernel}::{} failed in try {tried} of {TRIES}. It said:\n{}",
                scenario.name,
                failed.message().unwrap_or_default()
            );
            tried += 1;
        }
    })
}

/// Boots a guest that does not die of the emulator.
fn alive(kernel: &str, scenario: &Scenario, profile: &str) -> Result<Output, Failed> {
    let mut boots = 1;
    loop {
        let out = boot(kernel, scenario, profile).map_err(|e| Failed::from(e.to_string()))?;
        let died = failure::is_emulators(out.status.code(), &text(&out.stderr));
        if !died || boots > EMULATOR_RETRIES {
            return Ok(out);
        }
        boots += 1;
        eprintln!(
            "{kernel}::{}: the emulator ran code that the guest had patched away (int3); \
             boot {boots} of {}",
            scenario.name,
            EMULATOR_RETRIES + 1
        );
    }
}

/// The profile's folder that holds the programs.
fn profile(guest: &Path) -> String {
    let dir = guest.parent().and_then(Path::file_name);
    dir.map_or_else(|| "release".into(), |d| d.to_string_lossy().into_owned())
}

fn boot(kernel: &str, scenario: &Scenario, profile: &str) -> std::io::Result<Output> {
    let mut vm = Command::new(root().join("scripts/vm"));
    vm.args(["--kernel", kernel, "--cpus", "4", "--timeout", TIMEOUT_SECS, "--profile", profile]);
    if peers::WANTED_BY.contains(&scenario.name) {
        for peer in peers::PEERS.into_iter().filter(|p| peer_exists(p)) {
            vm.args(["--bin", peer]);
        }
    }
    vm.args(scenario.boot); // the last one of an option counts
    vm.args(["--", "artis-guest", "scenario", scenario.name]).output()
}

/// As scripts/vm looks for it: on PATH, or in the cache of peers.
fn peer_exists(peer: &str) -> bool {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = env::var_os("SCX_ARTIS_CACHE").map_or_else(
        || {
            env::var_os("XDG_CACHE_HOME")
                .map_or(home.join(".cache"), PathBuf::from)
                .join("scx_artis")
        },
        PathBuf::from,
    );
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs =
        env::split_paths(&path).chain([home.join(".cargo/bin"), cache.join("peers/bin")]);
    dirs.any(|d| d.join(peer).exists())
}

fn judge(kernel: &str, scenario: &Scenario, out: &Output) -> Result<Completion, Failed> {
    let (stdout, stderr) = (text(&out.stdout), text(&out.stderr));
    match out.status.code() {
        Some(0) => {
            figures(kernel, scenario, &stdout);
            Ok(Completion::Completed)
        }
        Some(SKIPPED) => {
            let why = stdout.lines().last().unwrap_or("").to_string();
            Ok(Completion::ignored_with(why))
        }
        code => Err(failure::text(code, &stdout, &stderr).into()),
    }
}

/// Keeps the guest's output in the folder ARTIS_VM_LOGS, for who wants the figures.
fn figures(kernel: &str, scenario: &Scenario, stdout: &str) {
    let Some(dir) = env::var_os("ARTIS_VM_LOGS").map(PathBuf::from) else { return };
    let path = dir.join(format!("{kernel}-{}.log", scenario.name));
    let kept = std::fs::create_dir_all(&dir)
        .and_then(|()| std::fs::File::create(&path))
        .and_then(|mut f| f.write_all(stdout.as_bytes()));
    if let Err(e) = kept {
        eprintln!("{}: {e}", path.display());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\r', "")
}
