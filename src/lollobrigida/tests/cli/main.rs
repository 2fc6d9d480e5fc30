// SPDX-License-Identifier: GPL-2.0-only
//! The program by its command line.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

mod runs;
mod words;

const BIN: &str = env!("CARGO_BIN_EXE_lollobrigida");

fn lollobrigida(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(BIN).args(args).assert()
}

fn scene_in(dir: &Path, text: &str) -> String {
    let path = dir.join("mine.toml");
    fs::write(&path, text).expect("written");
    path.display().to_string()
}
