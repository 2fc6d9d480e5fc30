// SPDX-License-Identifier: GPL-2.0-only
//! What the fuzzer has found, as tests/fuzz/corpus keeps it: an input a line, in base64.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Gives the reader of this name all inputs that were found for it: each takes another way through
/// its code.
pub fn read(name: &str, reader: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = dir.ancestors().map(|dir| dir.join("tests/fuzz/corpus").join(name));
    let file = found.into_iter().find(|file| file.exists()).expect("a corpus");
    let text = fs::read_to_string(file).expect("readable");
    assert!(!text.is_empty(), "{name}: no inputs");
    text.lines().for_each(|line| reader(&STANDARD.decode(line).expect("base64")));
}
