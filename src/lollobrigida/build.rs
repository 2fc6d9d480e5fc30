// SPDX-License-Identifier: GPL-2.0-only
//! The program carries the directory scenarios/: a scene added there must be built in.
//! `include_dir` itself tells cargo of the files that it found, not of new ones.

fn main() {
    println!("cargo:rerun-if-changed=../../scenarios");
}
