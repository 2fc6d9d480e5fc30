// SPDX-License-Identifier: GPL-2.0-only
//! libFuzzer in front of the reader that the variable FUZZ_READER names.
#![no_main]

use std::env;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use scx_artis::fuzzing::{READERS, Reader};

static READER: LazyLock<Reader> = LazyLock::new(|| {
    let wanted = env::var("FUZZ_READER").expect("FUZZ_READER is not set: see scripts/fuzz");
    let scenes: (&str, Reader) = ("scenes", lollobrigida::fuzzing::scenes);
    let found = READERS.into_iter().chain([scenes]).find(|(name, _)| *name == wanted);
    found.unwrap_or_else(|| panic!("FUZZ_READER: there is no reader {wanted}")).1
});

fuzz_target!(|bytes: &[u8]| READER(bytes));
