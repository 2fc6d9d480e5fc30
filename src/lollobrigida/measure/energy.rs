// SPDX-License-Identifier: GPL-2.0-only
//! Energy of the CPU packages, by RAPL through /sys/class/powercap.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the kernel shows RAPL.
pub const POWERCAP: &str = "/sys/class/powercap";

/// The package domains' counters at one moment, by directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Energy(BTreeMap<PathBuf, Domain>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Domain {
    energy_uj: u64,
    /// The counter goes on at 0 above this.
    max_uj: u64,
}

impl Energy {
    /// Reads `root`, which is [`POWERCAP`].
    ///
    /// # Errors
    /// In words, with what would make it possible.
    pub fn read(root: &Path) -> Result<Self, String> {
        let number = |path: PathBuf| {
            let text = fs::read_to_string(&path)
                .map_err(|err| format!("{} cannot be read ({err}): run as root", path.display()))?;
            text.trim().parse().map_err(|_| format!("{} is not a number", path.display()))
        };
        let mut domains = BTreeMap::new();
        for entry in fs::read_dir(root).into_iter().flatten().flatten() {
            let dir = entry.path();
            // zones inside a package (core, dram), and psys around it, would count twice
            let name = fs::read_to_string(dir.join("name")).unwrap_or_default();
            if !name.starts_with("package-") {
                continue;
            }
            let energy_uj = number(dir.join("energy_uj"))?;
            let max_uj = number(dir.join("max_energy_range_uj"))?;
            domains.insert(dir, Domain { energy_uj, max_uj });
        }
        if domains.is_empty() {
            return Err(format!(
                "no RAPL package in {}: virtual machines and most non-x86 CPUs have none, \
                 else load the module intel_rapl_msr",
                root.display()
            ));
        }
        Ok(Self(domains))
    }

    /// µJ used by all packages since `earlier`; a counter may have gone round once.
    #[must_use]
    pub fn since_uj(&self, earlier: &Self) -> u64 {
        let used = |(dir, late): (&PathBuf, &Domain)| {
            let early = earlier.0.get(dir)?.energy_uj;
            let round = if late.energy_uj < early { late.max_uj + 1 } else { 0 };
            Some((late.energy_uj + round).saturating_sub(early))
        };
        self.0.iter().filter_map(used).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(domains: &[(&str, &str, u64)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("temporary directory");
        for (dir, name, energy_uj) in domains {
            let dir = root.path().join(dir);
            fs::create_dir(&dir).expect("directory");
            fs::write(dir.join("name"), format!("{name}\n")).expect("name");
            fs::write(dir.join("energy_uj"), format!("{energy_uj}\n")).expect("energy");
            fs::write(dir.join("max_energy_range_uj"), "999\n").expect("range");
        }
        root
    }

    #[test]
    fn packages_count_once_and_wrap() {
        let zones = |a, b| {
            let core = ("intel-rapl:0:0", "core", a);
            machine(&[("intel-rapl:0", "package-0", a), ("intel-rapl:1", "package-1", b), core])
        };
        let root = zones(100, 990);
        let early = Energy::read(root.path()).expect("two packages");
        for (dir, energy_uj) in [("intel-rapl:0", "150"), ("intel-rapl:1", "20")] {
            fs::write(root.path().join(dir).join("energy_uj"), energy_uj).expect("energy");
        }
        let late = Energy::read(root.path()).expect("two packages");
        // 50 of the first; 10 to 1000 and 20 beyond of the second
        assert_eq!(late.since_uj(&early), 50 + 30);
    }

    #[test]
    fn a_machine_without_it_is_told() {
        let root = machine(&[("intel-rapl:0:0", "core", 5)]);
        let why = Energy::read(root.path()).expect_err("no package");
        assert!(why.contains("no RAPL package"), "{why}");
    }
}
