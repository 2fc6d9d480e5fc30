// SPDX-License-Identifier: GPL-2.0-only
//! What a loader could leave behind: BPF objects, settings of the kernel,
//! files of state. An inventory before and after must be equal.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::Result;
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use crate::guest::{PATIENCE, until};

/// Settings that a scheduler's loader may have reason to change.
const SETTINGS: [&str; 6] = [
    "/sys/kernel/debug/sched/preempt",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/bpf_stats_enabled",
    "/proc/sys/kernel/sched_schedstats",
    "/sys/fs/cgroup/cgroup.subtree_control",
    "/sys/devices/virtual/workqueue/cpumask",
];
/// Per-CPU settings of the deadline servers, in debugfs.
const SERVERS: [&str; 2] =
    ["/sys/kernel/debug/sched/ext_server", "/sys/kernel/debug/sched/fair_server"];
/// Folders where state is kept, or what a scenario installs.
const FOLDERS: [&str; 5] = ["/run", "/var/run", "/sys/fs/bpf", "/etc", "/usr/bin"];

/// One line for each thing that exists.
#[derive(Clone, PartialEq, Eq)]
pub struct Inventory(BTreeSet<String>);

impl Inventory {
    /// What there is now.
    #[must_use]
    pub fn now() -> Self {
        let mut all = BTreeSet::new();
        all.extend(
            ProgInfoIter::default()
                .map(|p| format!("program {} {}", p.id, p.name.to_string_lossy())),
        );
        all.extend(
            MapInfoIter::default().map(|m| format!("map {} {}", m.id, m.name.to_string_lossy())),
        );
        all.extend(LinkInfoIter::default().map(|l| format!("link {}", l.id)));
        let mut setting = |path: &Path| {
            if let Ok(v) = fs::read_to_string(path) {
                all.insert(format!("setting {} = {}", path.display(), v.trim()));
            }
        };
        for s in SETTINGS {
            setting(Path::new(s));
        }
        for cpu in SERVERS.iter().filter_map(|s| fs::read_dir(s).ok()).flatten().flatten() {
            setting(&cpu.path().join("runtime"));
            setting(&cpu.path().join("period"));
        }
        for f in FOLDERS {
            files(Path::new(f), &mut all);
        }
        Self(all)
    }

    /// How many of the settings are not as they were.
    #[must_use]
    pub fn settings_left(&self) -> usize {
        let now = Self::now();
        now.0.difference(&self.0).filter(|entry| entry.starts_with("setting ")).count()
    }

    /// Waits until all is as it was (BPF objects are freed a little later);
    /// fails with what remains or has changed.
    pub fn ensure_same(&self) -> Result<()> {
        let mut now = Self::now();
        let same = until("the inventory is as before", PATIENCE, || {
            now = Self::now();
            Ok(now == *self)
        });
        if same.is_err() {
            let left: Vec<&String> = now.0.difference(&self.0).collect();
            let gone: Vec<&String> = self.0.difference(&now.0).collect();
            anyhow::bail!("unloaded, but left behind: {left:?}; gone: {gone:?}");
        }
        Ok(())
    }
}

fn files(dir: &Path, all: &mut BTreeSet<String>) {
    for e in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = e.path();
        if path.is_dir() && !path.is_symlink() {
            files(&path, all);
        } else {
            all.insert(format!("file {}", path.display()));
        }
    }
}
