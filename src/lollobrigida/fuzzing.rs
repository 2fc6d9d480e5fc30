// SPDX-License-Identifier: GPL-2.0-only
//! The reader of scenes, for the fuzzer (scripts/fuzz) and for the test below, which reads what it
//! has found once more.

use crate::scene::{Format, convert, parse, render};

/// Any bytes as a scene, in both formats: a scene that survives its conversion, or mistakes that can
/// be shown.
pub fn scenes(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    for format in [Format::AnnexB, Format::Toml] {
        match parse("fuzzed", text, format) {
            Ok(scene) => {
                let again = parse("fuzzed", &convert(&scene), Format::Toml);
                again.expect("what was converted can be read");
            }
            Err(mistakes) => {
                assert!(!mistakes.list().is_empty());
                // each drawing takes as long as all else
                let draws = mistakes.list().len() < 3;
                assert!(!render(&mistakes.into(), draws).is_empty());
            }
        }
    }
}

#[cfg(test)]
#[path = "../../tests/fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_found_is_read() {
        super::corpus::read("scenes", super::scenes);
    }
}
