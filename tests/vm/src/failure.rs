// SPDX-License-Identifier: GPL-2.0-only
//! The text of a failed test. Whoever reads it may see the last lines only, so what
//! matters most comes last: the console, the scenario's output, the error.

use std::fmt::Write as _;

/// What the line of an error begins with, by `artis-guest`.
const ERROR: &str = "artis-guest: ";
/// Lines of the scenario's output that are kept, the last ones.
const OUTPUT_LINES: usize = 30;

/// `stdout` is what the guest's command printed, `stderr` what scripts/vm says: the console's
/// excerpt and why it is shown. The last line is the error's first one; without an error it
/// is how scripts/vm ended.
#[must_use]
pub fn text(code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let lines: Vec<&str> = stdout.lines().filter(|l| !l.is_empty()).collect();
    let error = lines.iter().rposition(|l| l.starts_with(ERROR));
    let (output, error) = lines.split_at(error.unwrap_or(lines.len()));
    let ended = match code {
        Some(code) => format!("scripts/vm: exit code {code}"),
        None => "scripts/vm: ended by a signal".to_string(),
    };
    let mut all = String::new();
    let mut add = |line: &str| _ = writeln!(all, "{line}");
    stderr.lines().for_each(&mut add);
    let dropped = output.len().saturating_sub(OUTPUT_LINES);
    if dropped > 0 {
        add(&format!("({dropped} lines of output before these)"));
    }
    output[dropped..].iter().copied().for_each(&mut add);
    match error.split_first() {
        Some((first, more)) => {
            // what an error quotes (culprits, the loader's output) is less than what it says
            more.iter().copied().for_each(&mut add);
            add(&ended);
            add(first);
        }
        None => add(&ended),
    }
    all
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn the_error_is_last() {
        let out = "it begins\nartis-guest: 3 bodies on RT CPUs\n  3 x body of read by x\n";
        let all = text(Some(1), out, "vm: the guest's kernel complained\n  | BUG: x\n");
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(
            lines,
            [
                "vm: the guest's kernel complained",
                "  | BUG: x",
                "it begins",
                "  3 x body of read by x",
                "scripts/vm: exit code 1",
                "artis-guest: 3 bodies on RT CPUs"
            ]
        );
    }

    #[test]
    fn long_output_is_cut_at_its_begin() {
        let out: String = (0..50).map(|i| format!("line {i}\n")).collect();
        let all = text(Some(124), &out, "vm: ended after 150 s\n");
        assert!(!all.contains("line 19\n") && all.contains("line 20\n"), "{all}");
        assert!(all.ends_with("line 49\nscripts/vm: exit code 124\n"), "{all}");
    }
}
