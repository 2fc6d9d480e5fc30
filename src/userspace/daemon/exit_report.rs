// SPDX-License-Identifier: GPL-2.0-only
//! Why the kernel ended the scheduler, in readable form.

use std::fmt;

use scx_utils::ScxExitKind;

use crate::model::printable;

/// A real-time task that holds a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The CPU.
    pub cpu: usize,
    /// Thread id.
    pub pid: u32,
    /// Name, printable.
    pub comm: String,
    /// Scheduling policy: 1 FIFO, 2 RR, 6 DEADLINE.
    pub policy: u32,
    /// For how long, ns.
    pub held_ns: u64,
}

/// What the kernel left in `struct user_exit_info`, and who held which CPU.
#[derive(Clone, Debug, Default)]
pub struct ExitReport {
    /// `enum scx_exit_kind`; 0 while the scheduler runs.
    pub kind: i32,
    /// Code given with an orderly end.
    pub code: i64,
    /// CPU on which it happened, if the kernel says.
    pub cpu: Option<i32>,
    /// The kind in the kernel's words.
    pub reason: String,
    /// The particulars.
    pub message: String,
    /// The kernel's debug dump; empty if there is none.
    pub dump: String,
    /// The real-time tasks that ran at the end, longest first.
    pub holders: Vec<Holder>,
}

/// Beyond this a real-time task is worth naming, ns.
const HELD_LONG_NS: u64 = 1_000_000_000;

impl ExitReport {
    /// Did the scheduler end because the daemon let go of it, or not at all?
    pub fn is_ours(&self) -> bool {
        self.kind <= ScxExitKind::Unreg as i32
    }

    /// Did the BPF side end it? It does so for one reason: the last NRT CPU goes offline.
    pub fn lacks_nrt_cpu(&self) -> bool {
        self.kind == ScxExitKind::UnregBPF as i32
    }

    /// Did the watchdog find a runnable task that did not get to run?
    pub fn is_stall(&self) -> bool {
        self.kind == ScxExitKind::ErrorStall as i32
    }

    /// The reason in one line.
    pub fn headline(&self) -> String {
        let cpu = self.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
        let reason = if self.reason.is_empty() { "for an unknown reason" } else { &self.reason };
        match self.message.as_str() {
            "" => format!("{reason}{cpu}"),
            message => format!("{reason} ({message}){cpu}"),
        }
    }

    fn explain_stall(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut long =
            self.holders.iter().filter(|holder| holder.held_ns >= HELD_LONG_NS).peekable();
        if long.peek().is_none() {
            return writeln!(
                f,
                "No real-time task held a CPU for long. If the dump below shows the task that did \
                 not run on a CPU that was free, this is a bug of scx_artis: please report it."
            );
        }
        for holder in long {
            writeln!(
                f,
                "CPU {} was held by the real-time task {}/{} ({}) for {:.1} s.",
                holder.cpu,
                holder.comm,
                holder.pid,
                policy_name(holder.policy),
                holder.held_ns as f64 / 1e9
            )?;
        }
        writeln!(
            f,
            "What could run nowhere else starved beneath it: tasks bound to that CPU and the \
             kernel's own per-CPU threads.\n\
             What to do: let the real-time task sleep now and then; or bind nothing else to its \
             CPU (taskset, cpuset); or, on Linux >= 7.0, leave the ext_server on \
             (/sys/kernel/debug/sched/ext_server/cpuN/runtime)."
        )
    }
}

impl fmt::Display for ExitReport {
    /// The whole report, several lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The kernel ejected the scheduler, its default took over: {}.",
            self.headline()
        )?;
        if self.is_stall() {
            self.explain_stall(f)?;
        }
        if self.kind == ScxExitKind::SysRq as i32 {
            writeln!(
                f,
                "Somebody pressed SysRq-S, which gives the machine back to the kernel's scheduler."
            )?;
        }
        if !self.dump.is_empty() {
            writeln!(
                f,
                "---- the kernel's dump ----\n{}\n---- end of the dump ----",
                self.dump.trim_end()
            )?;
        }
        Ok(())
    }
}

fn policy_name(policy: u32) -> String {
    match policy {
        0 => "SCHED_OTHER, boosted by a mutex".to_owned(),
        1 => "SCHED_FIFO".to_owned(),
        2 => "SCHED_RR".to_owned(),
        6 => "SCHED_DEADLINE".to_owned(),
        other => format!("policy {other}"),
    }
}

/// Text of a C string, up to its NUL, whatever its bytes are. Line feeds and
/// tabs stay; what else is not printable becomes `?`.
pub fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let line = |line: &[u8]| {
        let cells: Vec<_> = line.split(|byte| *byte == b'\t').map(printable).collect();
        cells.join("\t")
    };
    let lines: Vec<_> = bytes[..end].split(|byte| *byte == b'\n').map(line).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall() -> ExitReport {
        ExitReport {
            kind: ScxExitKind::ErrorStall as i32,
            reason: "runnable task stall".into(),
            message: "kworker/2:1[63] failed to run for 5.012s".into(),
            dump: "kworker/2:1 triggered exit kind 1026\n".into(),
            holders: vec![
                Holder { cpu: 2, pid: 123, comm: "hog".into(), policy: 1, held_ns: 5_400_000_000 },
                Holder { cpu: 3, pid: 9, comm: "brief".into(), policy: 1, held_ns: 2_000_000 },
            ],
            ..ExitReport::default()
        }
    }

    #[test]
    fn a_stall_names_who_held_the_cpu() {
        let text = stall().to_string();
        assert!(
            text.contains("runnable task stall (kworker/2:1[63] failed to run for 5.012s)"),
            "{text}"
        );
        assert!(
            text.contains("CPU 2 was held by the real-time task hog/123 (SCHED_FIFO) for 5.4 s"),
            "{text}"
        );
        assert!(text.contains("What to do"), "{text}");
        assert!(!text.contains("brief"), "{text}");
        assert!(text.contains("triggered exit kind 1026"), "{text}");
    }

    #[test]
    fn a_stall_without_a_culprit_is_ours() {
        let text = ExitReport { holders: vec![], ..stall() }.to_string();
        assert!(text.contains("bug of scx_artis"), "{text}");
    }

    #[test]
    fn ends_are_told_apart() {
        assert!(ExitReport::default().is_ours());
        assert!(ExitReport { kind: ScxExitKind::Unreg as i32, ..ExitReport::default() }.is_ours());
        let by_bpf = ExitReport { kind: ScxExitKind::UnregBPF as i32, ..ExitReport::default() };
        assert!(by_bpf.lacks_nrt_cpu() && !by_bpf.is_ours());
        let error = ExitReport {
            kind: ScxExitKind::ErrorBPF as i32,
            reason: "scx_bpf_error".into(),
            cpu: Some(3),
            ..ExitReport::default()
        };
        assert!(!error.is_ours() && !error.lacks_nrt_cpu());
        assert_eq!(error.headline(), "scx_bpf_error on CPU 3");
        let sysrq = ExitReport { kind: ScxExitKind::SysRq as i32, ..ExitReport::default() };
        assert!(sysrq.to_string().contains("SysRq-S"), "{sysrq}");
    }

    #[test]
    fn bytes_of_a_task_name_cannot_steer_the_terminal() {
        assert_eq!(c_text(b"a\x1b[2Jb\tc\nd\xff\0rest"), "a?[2Jb\tc\nd?");
    }
}
