// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel says about sched_ext: /sys/kernel/sched_ext (Linux 6.12 and newer, see
//! Documentation/scheduler/sched-ext.rst).

use std::fs;
use std::path::{Path, PathBuf};

use super::DEFAULT;
use crate::result::Scheduler;

/// The kernel's directory of sched_ext.
#[derive(Clone, Debug)]
pub struct SchedExt(PathBuf);

/// What is in charge, as far as sched_ext knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InCharge {
    /// `enabled`, `disabled`, or on the way from one to the other.
    pub state: String,
    /// Name of the scheduler; `None`: none.
    pub ops: Option<String>,
    /// Schedulers that were ever enabled since boot.
    pub enable_seq: Option<u64>,
}

impl InCharge {
    /// A sched_ext scheduler schedules.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.state == "enabled"
    }

    /// What was found, named after itself. One that is leaving is not in charge; neither is
    /// one of a kernel without sched_ext (`None`).
    #[must_use]
    pub fn scheduler(found: Option<&Self>) -> Scheduler {
        let ops = found.filter(|found| found.is_enabled()).and_then(|found| found.ops.clone());
        Scheduler { name: ops.clone().unwrap_or_else(|| DEFAULT.into()), ops }
    }

    /// The kernel's own schedules.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.state == "disabled"
    }
}

impl SchedExt {
    /// The running kernel's.
    #[must_use]
    pub fn here() -> Self {
        Self::at(Path::new("/sys/kernel/sched_ext"))
    }

    /// For tests: a directory with the same files.
    #[must_use]
    pub fn at(dir: &Path) -> Self {
        Self(dir.to_owned())
    }

    /// `None`: this kernel has no sched_ext.
    #[must_use]
    pub fn read(&self) -> Option<InCharge> {
        let file = |name: &str| fs::read_to_string(self.0.join(name)).ok();
        let word = |name: &str| file(name).map(|text| text.trim().to_owned());
        let state = word("state")?;
        // the directory root is there while a scheduler is
        let ops = word("root/ops").filter(|ops| !ops.is_empty());
        Some(InCharge { state, ops, enable_seq: word("enable_seq").and_then(|t| t.parse().ok()) })
    }
}

/// Running programs whose name is that of a sched_ext scheduler, as `scx_bpfland (712)`.
#[must_use]
pub fn running_programs() -> Vec<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| shown(&fs::read(format!("/proc/{pid}/comm")).ok()?, pid)).collect()
}

/// A program by its name, which any user can choose, if it is that of a scheduler: what is not
/// printable in it is left out.
fn shown(comm: &[u8], pid: u32) -> Option<String> {
    let printable = comm.iter().filter(|byte| byte.is_ascii_graphic());
    let name: String = printable.map(|byte| char::from(*byte)).collect();
    name.starts_with("scx_").then(|| format!("{name} ({pid})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_programs_cannot_steer_the_terminal() {
        assert_eq!(shown(b"scx_bpfland\n", 7).as_deref(), Some("scx_bpfland (7)"));
        assert_eq!(shown(b"scx_\x1b[2J\na\xff\n", 7).as_deref(), Some("scx_[2Ja (7)"));
        assert_eq!(shown(b"bash\n", 7), None);
    }

    #[test]
    fn a_scheduler_that_is_leaving_is_not_in_charge() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let kernel = SchedExt::at(dir.path());
        let ops = || InCharge::scheduler(kernel.read().as_ref()).ops;
        assert_eq!(ops(), None);
        fs::create_dir(dir.path().join("root")).expect("directory");
        fs::write(dir.path().join("root/ops"), "artis_1.0\n").expect("file");
        fs::write(dir.path().join("state"), "disabling\n").expect("file");
        assert_eq!(ops(), None);
        fs::write(dir.path().join("state"), "enabled\n").expect("file");
        assert_eq!(ops().as_deref(), Some("artis_1.0"));
    }
}
