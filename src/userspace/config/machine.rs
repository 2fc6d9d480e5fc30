// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs of the machine, from sysfs.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::CpuSet;

/// Where the kernel describes its CPUs.
pub const SYSFS_CPU: &str = "/sys/devices/system/cpu";

/// Which CPUs there are and which of them share a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// CPUs that the kernel may ever bring up.
    pub possible: CpuSet,
    /// CPUs that are up now.
    pub online: CpuSet,
    /// The hardware threads of each core with more than one of them online.
    pub smt_groups: Vec<CpuSet>,
}

impl Machine {
    /// Reads the machine from sysfs at `dir` (normally [`SYSFS_CPU`]).
    ///
    /// # Errors
    /// When `possible` or `online` cannot be read or understood. A core whose
    /// siblings are unknown counts as one without SMT.
    pub fn read(dir: &Path) -> Result<Self> {
        let possible = read_list(&dir.join("possible"))?;
        let online = Self::online(dir)?;
        let smt_groups = online
            .iter()
            .filter_map(|cpu| {
                let siblings = dir.join(format!("cpu{cpu}/topology/thread_siblings_list"));
                let group = read_list(&siblings).ok()?.and(&online);
                // each group once: at its lowest CPU
                (group.len() > 1 && group.iter().next() == Some(cpu)).then_some(group)
            })
            .collect();
        Ok(Self { possible, online, smt_groups })
    }

    /// Reads only which CPUs are up now, from sysfs at `dir`.
    ///
    /// # Errors
    /// When `online` cannot be read or understood.
    pub fn online(dir: &Path) -> Result<CpuSet> {
        read_list(&dir.join("online"))
    }
}

fn read_list(path: &Path) -> Result<CpuSet> {
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    text.parse().with_context(|| format!("understanding {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_sysfs_says() {
        let dir = tempfile::tempdir().expect("a directory");
        let put = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            fs::write(path, text).expect("written");
        };
        put("possible", "0-7\n");
        put("online", "0-4\n");
        put("cpu0/topology/thread_siblings_list", "0,2\n");
        put("cpu2/topology/thread_siblings_list", "0,2\n");
        put("cpu4/topology/thread_siblings_list", "4-5\n");

        let machine = Machine::read(dir.path()).expect("a machine");
        assert_eq!(machine.possible.len(), 8);
        assert_eq!(machine.online.to_string(), "0-4");
        let groups: Vec<_> = machine.smt_groups.iter().map(CpuSet::to_string).collect();
        assert_eq!(groups, ["0,2"], "CPU 5 is offline: 4 has its core alone");
    }

    #[test]
    fn missing_sysfs_names_the_file() {
        let error = Machine::read(Path::new("/nonexistent")).expect_err("no such directory");
        assert!(error.to_string().contains("/nonexistent/possible"), "{error}");
    }
}
