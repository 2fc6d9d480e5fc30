// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's log, and what in it fails a scenario.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::{Context, Result};

/// The kernel's log from the moment this was made.
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Begins at what is new from now on.
    pub fn from_now() -> Result<Self> {
        let mut log = Self::open()?;
        log.drain();
        Ok(log)
    }

    fn open() -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .context("/dev/kmsg")?;
        Ok(Self { file })
    }

    /// The messages since the last call.
    pub fn drain(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        let mut buf = [0u8; 8192];
        loop {
            match self.file.read(&mut buf) {
                Ok(0) => return out,
                Ok(n) => {
                    let text = String::from_utf8_lossy(&buf[..n]);
                    let text = text.split_once(';').map_or(&*text, |(_, t)| t);
                    out.push(text.lines().next().unwrap_or("").to_string());
                }
                // records were overwritten: go on with the oldest one left
                Err(e) if e.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return out,
            }
        }
    }
}

/// What the kernel writes when something is wrong with it or with the scheduler: `BUG:` is also
/// the begin of soft lockups (kernel/watchdog.c), KASAN's reports and a sleeping function that is
/// called in atomic context; `BUG ` of reports with slab_debug (mm/slub.c).
const COMPLAINTS: [&str; 15] = [
    "BUG: ",
    "BUG ",
    "WARNING: ",
    "Oops",
    "general protection",
    "Kernel panic",
    // kernel/rcu/tree_stall.h, tree_exp.h
    "self-detected stall",
    "detected stalls on CPUs/tasks",
    "detected expedited stalls",
    // kernel/hung_task.c
    "blocked for more than",
    "hard LOCKUP",
    "UBSAN:",
    "DEADLOCK",
    "inconsistent lock state",
    // a system call that a filter refuses (kernel/auditsc.c): one that the daemon should not make, or
    // that its filter lacks
    "type=1326 ",
];
/// How the kernel says that a scheduler's reign ended (kernel/sched/ext.c), and how it ends that
/// line when the scheduler's own program wanted it.
const DISABLED: [&str; 2] = ["sched_ext: BPF scheduler ", " disabled ("];
const ON_REQUEST: &str = "(unregistered from user space)";

/// Does the kernel say so of a scheduler that it ended?
#[must_use]
pub fn is_ejection(line: &str) -> bool {
    DISABLED.iter().all(|word| line.contains(word)) && !line.contains(ON_REQUEST)
}

/// The lines that no test may cause, but for those that contain one of `expected`.
#[must_use]
pub fn complaints<'a>(log: impl IntoIterator<Item = &'a str>, expected: &[&str]) -> Vec<&'a str> {
    log.into_iter()
        .filter(|l| COMPLAINTS.iter().any(|word| l.contains(word)) || is_ejection(l))
        .filter(|l| !expected.iter().any(|word| l.contains(word)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::complaints;

    /// As the kernels 6.12 to 7.3 write them.
    const BAD: [&str; 10] = [
        "BUG: scheduling while atomic: stress-ng/312/0x00000002",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "WARNING: CPU: 2 PID: 97 at kernel/sched/ext.c:2310 dispatch_to_local_dsq",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [worker:412]",
        "rcu: INFO: rcu_preempt self-detected stall on CPU",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "INFO: task kworker/2:1:87 blocked for more than 30 seconds.",
        "sched_ext: BPF scheduler \"artis\" disabled (runnable task stall)",
        "Oops: int3: 0000 [#1] SMP NOPTI",
        "audit: type=1326 audit(1.2:3): auid=0 uid=0 pid=181 comm=\"scx_artis\" sig=0 syscall=59",
    ];
    const GOOD: [&str; 4] = [
        "sched_ext: BPF scheduler \"artis\" enabled",
        "sched_ext: BPF scheduler \"artis\" disabled (unregistered from user space)",
        "smpboot: CPU 3 is now offline",
        "workqueue: worker hogged CPU for >10000us 4 times",
    ];

    #[test]
    fn complaints_are_found() {
        assert_eq!(complaints(GOOD.into_iter().chain(BAD), &[]), BAD);
    }

    #[test]
    fn what_a_scenario_causes_is_none() {
        assert_eq!(complaints([BAD[3], BAD[7]], &["soft lockup"]), [BAD[7]]);
    }
}
