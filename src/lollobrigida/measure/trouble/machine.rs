// SPDX-License-Identifier: GPL-2.0-only
//! Trouble that can be known before a run: how the machine is set.

use std::fs;
use std::path::Path;

use crate::measure::machine::cpu_list;
use crate::result::Warning;
use crate::scene::Cpus;

/// Where the kernel shows the CPUs.
pub const SYS_CPU: &str = "/sys/devices/system/cpu";

/// All of these: `frequency` and `smt`. `root` is [`SYS_CPU`], `cpus` those in use.
#[must_use]
pub fn all(root: &Path, cpus: &[u32]) -> Vec<Warning> {
    [governor(root, cpus), boost(root), smt(root, cpus)].into_iter().flatten().collect()
}

/// `frequency`: a governor that changes the CPUs' speed with their load.
#[must_use]
pub fn governor(root: &Path, cpus: &[u32]) -> Option<Warning> {
    let governor = |cpu: &u32| {
        let text = read(&root.join(format!("cpu{cpu}/cpufreq/scaling_governor")))?;
        (text != "performance").then_some((*cpu, text))
    };
    let (others, names): (Vec<u32>, Vec<String>) = cpus.iter().filter_map(governor).unzip();
    let name = names.first()?;
    Some(Warning::new(
        "frequency",
        format!(
            "the frequency of CPUs {} follows their load (governor {name}), so the same work takes \
             longer on a CPU that was idle, and schedulers are judged by the governor too: set \
             it for the measurement, cpupower frequency-set -g performance",
            list(others)
        ),
    ))
}

/// `frequency`: a boost that depends on heat and on how many CPUs are busy.
#[must_use]
pub fn boost(root: &Path) -> Option<Warning> {
    let boost = root.join("cpufreq/boost");
    let no_turbo = root.join("intel_pstate/no_turbo");
    let (file, off) = match (read(&boost).as_deref(), read(&no_turbo).as_deref()) {
        (_, Some("0")) => (no_turbo, 1),
        (Some("1"), None) => (boost, 0),
        _ => return None,
    };
    Some(Warning::new(
        "frequency",
        format!(
            "boost is on: a CPU is faster while others are idle or the package is cool, so runs \
             differ: echo {off} > {}",
            file.display()
        ),
    ))
}

/// `smt`: CPUs that share a core.
#[must_use]
pub fn smt(root: &Path, cpus: &[u32]) -> Option<Warning> {
    let shares = |cpu: &&u32| {
        let siblings = read(&root.join(format!("cpu{cpu}/topology/thread_siblings_list")));
        let siblings = siblings.and_then(|text| cpu_list(&text)).unwrap_or_default();
        siblings.iter().any(|sibling| sibling != *cpu && cpus.contains(sibling))
    };
    let sharing: Vec<u32> = cpus.iter().filter(shares).copied().collect();
    if sharing.is_empty() {
        return None;
    }
    Some(Warning::new(
        "smt",
        format!(
            "CPUs {} share cores (SMT): a task is slower while its neighbour is busy, whatever the \
             scheduler does: echo off > /sys/devices/system/cpu/smt/control, or give the scene \
             one CPU of each core",
            list(sharing)
        ),
    ))
}

fn read(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// As the kernel's cpulist.
pub(super) fn list(cpus: impl IntoIterator<Item = u32>) -> String {
    Cpus(cpus.into_iter().collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a directory")).expect("directory");
            fs::write(path, format!("{text}\n")).expect("file");
        }
        root
    }

    #[test]
    fn governors_that_follow_the_load_are_told() {
        let root = machine(&[
            ("cpu0/cpufreq/scaling_governor", "performance"),
            ("cpu1/cpufreq/scaling_governor", "schedutil"),
            ("cpu2/cpufreq/scaling_governor", "schedutil"),
        ]);
        let warning = governor(root.path(), &[0, 1, 2]).expect("a warning");
        assert_eq!(warning.code, "frequency");
        assert!(warning.text.contains("CPUs 1-2") && warning.text.contains("schedutil"));
        assert_eq!(governor(root.path(), &[0]), None);
    }

    #[test]
    fn boost_is_known_in_both_forms() {
        let of = |files: &[(&str, &str)]| boost(machine(files).path()).map(|w| w.text);
        assert!(of(&[("cpufreq/boost", "1")]).expect("told").contains("echo 0 > "));
        assert!(of(&[("intel_pstate/no_turbo", "0")]).expect("told").contains("echo 1 > "));
        assert_eq!(of(&[("intel_pstate/no_turbo", "1")]), None);
        assert_eq!(of(&[("cpufreq/boost", "0")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn siblings_matter_only_when_both_are_in_use() {
        let root = machine(&[
            ("cpu0/topology/thread_siblings_list", "0,2"),
            ("cpu1/topology/thread_siblings_list", "1"),
            ("cpu2/topology/thread_siblings_list", "0,2"),
        ]);
        let warning = smt(root.path(), &[0, 1, 2]).expect("a warning");
        assert!(warning.code == "smt" && warning.text.contains("CPUs 0,2 share"), "{warning:?}");
        assert_eq!(smt(root.path(), &[0, 1]), None);
    }
}
