// SPDX-License-Identifier: GPL-2.0-only
//! The text of a failed test. Whoever reads it may see the last lines only, so what
//! matters most comes last: the console, the scenario's output, the error.

use std::fmt::Write as _;

use super::machine::{End, Ran};
use crate::kernel_log::complaints;
use crate::scenarios::ALL;

/// What the line of an error begins with, by `artis-guest`.
const ERROR: &str = "artis-guest: ";
/// Lines of the scenario's output that are kept, the last ones.
const OUTPUT_LINES: usize = 30;
/// Lines of the console's excerpt, which begins at the first complaint, and complaints of a guest that
/// ended, that are printed again near the end.
const COMPLAINT_LINES: usize = 4;
/// Before these lines: a guest runs several scenarios, and some expect a complaint.
const SINCE_BOOT: &str = "the guest's first complaint since it booted, here or in a test before:";
/// Before the complaints of a guest that ended, the last ones: they say what of.
const COMPLAINED: &str = "the guest's last complaints:";
/// What the lines of that excerpt begin with, by scripts/vm.
const CONSOLE: &str = "  | ";

/// What a trial printed, without its begin, and why it failed: its last line is the error's first
/// one; without an error it is how the guest ended.
#[must_use]
pub fn text(ran: &Ran) -> String {
    let lines: Vec<&str> = ran.output.lines().filter(|l| !l.is_empty()).collect();
    let error = lines.iter().rposition(|l| l.starts_with(ERROR));
    let (output, error) = lines.split_at(error.unwrap_or(lines.len()));
    let ended = match ran.end {
        End::Code(code) => format!("exit code {code}"),
        End::Died(Some(code)) => format!("the guest is gone; scripts/vm: exit code {code}"),
        End::Died(None) => "the guest is gone; scripts/vm: ended by a signal".to_string(),
        End::Overdue => format!("no end after {:.0} s", ran.took.as_secs_f64()),
    };
    let mut all = String::new();
    let mut add = |line: &str| _ = writeln!(all, "{line}");
    ran.console.lines().for_each(&mut add);
    let dropped = output.len().saturating_sub(OUTPUT_LINES);
    if dropped > 0 {
        add(&format!("({dropped} lines of output before these)"));
    }
    output[dropped..].iter().copied().for_each(&mut add);
    match error.split_first() {
        Some((first, more)) => {
            // what an error quotes (culprits, the loader's output) is less than what it says
            more.iter().copied().for_each(&mut add);
            let mut console =
                ran.console.lines().filter(|line| line.starts_with(CONSOLE)).peekable();
            if console.peek().is_some() {
                add(SINCE_BOOT);
            }
            console.take(COMPLAINT_LINES).for_each(&mut add);
            add(&ended);
            add(first);
        }
        None => {
            let complaints = complaints(ran.console.lines(), &[]);
            if !complaints.is_empty() {
                add(COMPLAINED);
            }
            let dropped = complaints.len().saturating_sub(COMPLAINT_LINES);
            complaints[dropped..].iter().for_each(|line| add(line));
            add(&ended);
        }
    }
    all
}

/// Exit codes of scripts/vm for a guest that died before its command ended, or hung.
const GUEST_DIED: [i32; 2] = [125, 124];

/// Did the guest die because QEMU's emulation of several CPUs ran an instruction that the guest
/// had replaced meanwhile?
///
/// The kernel patches its text (static keys, which every start and end of a scheduler flips)
/// under a breakpoint, int3. A virtual CPU may go on with a translation of the breakpoint after the
/// kernel has put the final instruction in place on all CPUs and forgotten about it; the
/// kernel finds an int3 that nobody set, and dies. Real CPUs do not do that. First reported
/// with QEMU 8.0 (linux-kernel, July 2023, "qemu-x86_64 booting with 8.0.0 stil see int3"),
/// some one in a thousand boots; seen here in 2 of 60 on a busy machine with QEMU 10.0.
///
/// Only the first complaint counts, but for those that a scenario expects, which may have run in
/// this guest before: an int3 after another one proves nothing.
#[must_use]
pub fn is_emulators(code: Option<i32>, stderr: &str) -> bool {
    let expected: Vec<&str> = ALL.iter().flat_map(|s| s.complaints).copied().collect();
    code.is_some_and(|code| GUEST_DIED.contains(&code))
        && complaints(stderr.lines(), &expected)
            .first()
            .is_some_and(|line| line.contains("Oops: int3:"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{End, Ran, is_emulators};

    fn text(end: End, output: &str, console: &str) -> String {
        let (output, console) = (output.into(), console.into());
        let took = Duration::from_secs(150);
        super::text(&Ran { end, output, console, took, foreign_pct: 0.0, first: true })
    }

    #[test]
    fn only_a_death_that_begins_with_int3_is_the_emulators() {
        let int3 = "  | [ 11.2] Oops: int3: 0000 [#1] SMP NOPTI\n  | [ 11.3] Kernel panic - x\n";
        assert!(is_emulators(Some(125), int3));
        assert!(!is_emulators(Some(1), int3), "the test itself says that it failed");
        let bug = format!("  | [ 11.1] BUG: scheduling while atomic\n{int3}");
        assert!(!is_emulators(Some(125), &bug));
        assert!(!is_emulators(Some(125), "  | [ 1.0] WARNING: CPU: 0 PID: 1 at ext.c\n"));
        assert!(!is_emulators(Some(125), ""));
        // what scenario hotplug expects
        let known = "  | [ 1.0] WARNING: CPU: 0 PID: 18 at kernel/sched/deadline.c:265 x\n";
        assert!(is_emulators(Some(125), &format!("{known}{int3}")));
        assert!(!is_emulators(Some(125), &format!("{known}{bug}")));
    }

    #[test]
    fn the_error_is_last() {
        let out = "it begins\nartis-guest: 3 bodies on RT CPUs\n  3 x body of read by x\n";
        let all = text(End::Code(1), out, "vm: the guest's kernel complained\n  | BUG: x\n");
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(
            lines,
            [
                "vm: the guest's kernel complained",
                "  | BUG: x",
                "it begins",
                "  3 x body of read by x",
                super::SINCE_BOOT,
                "  | BUG: x",
                "exit code 1",
                "artis-guest: 3 bodies on RT CPUs"
            ]
        );
    }

    #[test]
    fn what_a_guest_died_of_is_last() {
        let said = "  | WARNING: x\n  | Call Trace\n  | Oops: int3: y\n  | Kernel panic - z\n";
        let all = text(End::Died(Some(125)), "it begins\n", said);
        let end = "it begins\n\
            the guest's last complaints:\n  | WARNING: x\n  | Oops: int3: y\n  | Kernel panic - z\n\
            the guest is gone; scripts/vm: exit code 125\n";
        assert!(all.ends_with(end), "{all}");
    }

    #[test]
    fn long_output_is_cut_at_its_begin() {
        let out: String = (0..50).map(|i| format!("line {i}\n")).collect();
        let all = text(End::Overdue, &out, "vm: ended by a signal\n");
        assert!(!all.contains("line 19\n") && all.contains("line 20\n"), "{all}");
        assert!(all.ends_with("line 49\nno end after 150 s\n"), "{all}");
    }
}
