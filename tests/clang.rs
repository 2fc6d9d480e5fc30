// SPDX-License-Identifier: GPL-2.0-only
//! build/bpf-clang: which clang compiles the BPF side, and what is said when
//! none is fit. Fake clangs in a directory of their own stand for Debian's.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the wrapper where only the clangs of `versions` (name, version) exist.
///
/// Each is a link to one script: a script written here could not be executed (ETXTBSY) while a child
/// that another test has forked holds the descriptor it was written by.
fn run(versions: &[(&str, &str)]) -> Output {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    symlink("/usr/bin/sed", dir.path().join("sed")).expect("linked");
    for (name, version) in versions {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        symlink(root.join("tests/fixtures/clang"), &path).expect("linked");
        fs::write(path.with_extension("version"), format!("{version}\n")).expect("written");
    }
    Command::new(root.join("build/bpf-clang"))
        .args(["--version", "-x"])
        .env("PATH", dir.path())
        .env("LLVM_DIR", dir.path())
        .output()
        .expect("sh")
}

fn chosen(versions: &[(&str, &str)]) -> String {
    let output = run(versions);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_newest_fit_one_is_taken_under_any_name() {
    let debian = [("clang", "14.0.6"), ("clang-18", "18.1.8"), ("clang-19", "19.1.7")];
    assert!(chosen(&debian).contains("/clang-19: --version -x"));
    assert!(chosen(&[("clang-14", "14.0.6"), ("clang", "20.1.2")]).contains("/clang:"));
    assert!(chosen(&[("llvm-19/bin/clang", "19.1.7")]).contains("/llvm-19/bin/clang:"));
}

#[test]
fn without_a_fit_one_it_says_what_to_install() {
    for (clangs, seen) in
        [(&[][..], "no clang at all"), (&[("clang", "14.0.6")][..], "(version 14)")]
    {
        let output = run(clangs);
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8_lossy(&output.stderr);
        for words in [seen, ">= 18", "apt-get install clang-19", "BPF_CLANG="] {
            assert!(stderr.contains(words), "\"{words}\" is missing: {stderr}");
        }
    }
}
