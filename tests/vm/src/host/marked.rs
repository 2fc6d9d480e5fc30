// SPDX-License-Identifier: GPL-2.0-only
//! Lines of a scenario's output that are meant for the host: a mark, and what they say.

/// Splits `output` into what `parse` makes of the lines that begin with `mark`, each without it, and
/// the rest. A line of which it makes nothing stays in the rest.
pub fn take<T>(output: &str, mark: &str, parse: impl Fn(&str) -> Option<T>) -> (Vec<T>, String) {
    let (mut taken, mut rest) = (Vec::new(), String::new());
    for line in output.lines() {
        match line.strip_prefix(mark).and_then(&parse) {
            Some(said) => taken.push(said),
            None => rest.extend([line, "\n"]),
        }
    }
    (taken, rest)
}
