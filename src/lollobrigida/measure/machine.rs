// SPDX-License-Identifier: GPL-2.0-only
//! Which machine this is.

use std::fs;

use anyhow::{Context, Result};
use nix::sys::utsname::uname;

use crate::result::Machine;

/// The kernel, the CPU's name and the number of online CPUs.
///
/// # Errors
/// When the kernel does not tell.
pub fn machine() -> Result<Machine> {
    let name = uname().context("uname(2) failed")?;
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = model_name(&cpuinfo)
        .map(str::to_owned)
        .or_else(|| fs::read_to_string("/proc/device-tree/model").ok())
        .unwrap_or_else(|| name.machine().to_string_lossy().into_owned());
    Ok(Machine {
        kernel: name.release().to_string_lossy().into_owned(),
        version: name.version().to_string_lossy().into_owned(),
        // the device tree's text ends with a zero
        cpu: cpu.trim_end_matches('\0').trim().to_owned(),
        cpus: online_cpus()?.len() as u32,
    })
}

/// Of the first CPU; Arm's has none.
fn model_name(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Ascending.
///
/// # Errors
/// When /sys does not tell.
pub fn online_cpus() -> Result<Vec<u32>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let text = fs::read_to_string(ONLINE).with_context(|| format!("cannot read {ONLINE}"))?;
    cpu_list(&text).with_context(|| format!("{ONLINE} is no list of CPUs: {text:?}"))
}

/// The kernel's cpulist form, as `0-2,5`.
#[must_use]
pub fn cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lists_of_cpus() {
        assert_eq!(cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(cpu_list("7"), Some(vec![7]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        assert_eq!(cpu_list("0-x"), None);
    }

    #[test]
    fn takes_the_first_cpus_name() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 3 GHz\nmodel name\t: B\n";
        assert_eq!(model_name(text), Some("A CPU @ 3 GHz"));
        assert_eq!(model_name("processor\t: 0\n"), None);
    }
}
