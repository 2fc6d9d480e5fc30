// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers are put in charge and taken out: with shell scripts as schedulers and a
//! directory as the kernel's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lollobrigida::execute::sched_ext::SchedExt;
use lollobrigida::execute::schedulers::{Patience, Schedulers};
use lollobrigida::execute::{Under, Unfit};
use tempfile::TempDir;

struct Kernel(TempDir);

impl Kernel {
    fn idle() -> Self {
        let kernel = Self(tempfile::tempdir().expect("a directory"));
        kernel.write("state", "disabled");
        kernel.write("enable_seq", "3");
        kernel
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), format!("{text}\n")).expect("written");
    }

    fn state(&self) -> String {
        fs::read_to_string(self.path("state")).expect("state").trim().to_owned()
    }

    /// A scheduler that is this shell script; $d is the kernel's directory.
    ///
    /// The program is a link to the shell. One written here could not be executed (ETXTBSY) while
    /// a child that another test has forked holds the descriptor it was written by.
    fn under(&self, script: &str) -> Under {
        let program = self.path("scx_fake");
        symlink("/bin/sh", &program).expect("linked");
        let script = format!("d={}\n{script}\n", self.0.path().display());
        let command = vec![program.display().to_string(), "-c".into(), script];
        Under { title: "scx_fake".into(), command: Some(command) }
    }

    fn schedulers(&self) -> Schedulers {
        self.patient(20_000, 10_000)
    }

    fn patient(&self, start_ms: u64, stop_ms: u64) -> Schedulers {
        let [start, stop] = [start_ms, stop_ms].map(Duration::from_millis);
        Schedulers::new(SchedExt::at(self.0.path()), Patience { start, stop })
    }
}

/// Takes charge and gives it back when it is asked to.
const GOOD: &str = "leave() { rm -r $d/root; echo disabled >$d/state; echo $1 >$d/by; exit 0; }
trap 'leave INT' INT
trap 'leave TERM' TERM
mkdir $d/root; echo fake_1.0 >$d/root/ops; echo 4 >$d/enable_seq; echo enabled >$d/state
while :; do sleep 0.02; done";

fn default() -> Under {
    Under { title: "default".into(), command: None }
}

#[test]
fn a_scheduler_comes_and_goes() {
    let kernel = Kernel::idle();
    let mut schedulers = kernel.schedulers();
    let scheduler = schedulers.start(&kernel.under(GOOD)).expect("started");
    assert_eq!(scheduler.ops.as_deref(), Some("fake_1.0"));
    assert_eq!(scheduler.name, "scx_fake");
    assert_eq!(schedulers.lost().expect("asked"), None);
    schedulers.stop().expect("stopped");
    assert_eq!(kernel.state(), "disabled");
    assert_eq!(fs::read_to_string(kernel.path("by")).expect("by"), "INT\n", "SIGINT comes first");
    schedulers.stop().expect("nothing to stop");
}

#[test]
fn one_that_does_not_listen_to_sigint_gets_sigterm() {
    let kernel = Kernel::idle();
    let mut schedulers = kernel.patient(20_000, 2_000);
    let deaf = GOOD.replace("trap 'leave INT' INT", "trap '' INT");
    schedulers.start(&kernel.under(&deaf)).expect("started");
    schedulers.stop().expect("stopped");
    assert_eq!(fs::read_to_string(kernel.path("by")).expect("by"), "TERM\n");
}

#[test]
fn one_that_listens_to_nothing_is_killed_and_what_the_kernel_says_is_told() {
    let kernel = Kernel::idle();
    let mut schedulers = kernel.patient(20_000, 200);
    let deaf = GOOD.replace("leave INT", "").replace("leave TERM", "");
    schedulers.start(&kernel.under(&format!("echo $$ >$d/pid\n{deaf}"))).expect("started");
    // nobody plays the kernel here: its state stays as the program left it
    let error = schedulers.stop().expect_err("the state stays").to_string();
    assert!(error.contains("fake_1.0") && error.contains("sysrq"), "{error}");
    let pid = fs::read_to_string(kernel.path("pid")).expect("pid");
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "it runs still");
}

#[test]
fn one_that_ends_early_is_told_with_its_last_words() {
    let kernel = Kernel::idle();
    let script = "seq 1 100; echo 'no BTF here' >&2; exit 7";
    let error = kernel.schedulers().start(&kernel.under(script)).expect_err("it ended");
    let text = error.to_string();
    assert!(text.contains("exit status: 7") && text.contains("| no BTF here"), "{text}");
    assert!(text.contains("| 100") && !text.contains("| 50\n"), "only the last lines: {text}");
}

#[test]
fn one_that_never_takes_charge_is_stopped() {
    let kernel = Kernel::idle();
    let mut schedulers = kernel.patient(300, 10_000);
    let script = "echo $$ >$d/pid\necho loading\nwhile :; do sleep 0.02; done";
    let text = schedulers.start(&kernel.under(script)).expect_err("never in charge").to_string();
    assert!(text.contains("'disabled'") && text.contains("| loading"), "{text}");
    let pid = fs::read_to_string(kernel.path("pid")).expect("pid");
    assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "it runs still");
}

#[test]
fn a_foreign_scheduler_is_named_and_not_touched() {
    let kernel = Kernel::idle();
    fs::create_dir(kernel.path("root")).expect("made");
    kernel.write("root/ops", "lavd_1.2");
    kernel.write("state", "enabled");
    for under in [default(), kernel.under("touch $d/started")] {
        let error = kernel.schedulers().start(&under).expect_err("occupied");
        assert!(error.is::<Unfit>());
        assert!(error.to_string().contains("lavd_1.2"), "{error}");
    }
    assert!(!kernel.path("started").exists());
    assert_eq!(kernel.schedulers().accept().ops.as_deref(), Some("lavd_1.2"));
}

#[test]
fn a_scheduler_that_goes_or_changes_is_noticed() {
    let kernel = Kernel::idle();
    let mut schedulers = kernel.schedulers();
    let brief = GOOD.replace("while :; do sleep 0.02; done", "")
        + "while [ ! -e $d/go ]; do sleep 0.02; done; echo 'runnable task stall'; leave EJECTED";
    schedulers.start(&kernel.under(&brief)).expect("started");
    kernel.write("go", "");
    let lost = loop {
        if let Some(lost) = schedulers.lost().expect("asked") {
            break lost;
        }
    };
    assert!(lost.contains("fake_1.0") || lost.contains("runnable task stall"), "{lost}");
    schedulers.stop().expect("stopped");

    schedulers.start(&default()).expect("started");
    assert_eq!(schedulers.lost().expect("asked"), None);
    kernel.write("enable_seq", "9"); // one came and went meanwhile
    assert!(schedulers.lost().expect("asked").is_some());
}

#[test]
fn without_sched_ext_only_the_kernels_own_runs() {
    let kernel = Kernel::idle();
    let under = kernel.under(GOOD);
    fs::remove_file(kernel.path("state")).expect("removed");
    let mut schedulers = kernel.schedulers();
    schedulers.start(&default()).expect("started");
    assert_eq!(schedulers.lost().expect("asked"), None);
    let error = schedulers.start(&under).expect_err("no sched_ext");
    assert!(error.is::<Unfit>() && error.to_string().contains("--under default"), "{error}");
}
