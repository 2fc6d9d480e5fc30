// SPDX-License-Identifier: GPL-2.0-only
//! Which CPU a calibration is of.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::actor::kernel;

/// The lines of /proc/cpuinfo that tell one CPU from another, on x86, arm64 and RISC-V.
const TELLING: [&str; 16] = [
    "vendor_id",
    "model name",
    "cpu family",
    "model",
    "stepping",
    "microcode",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "isa",
    "uarch",
    "mvendorid",
    "marchid",
    "mimpid",
];

/// Two that are equal compute at the same speed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// [`kernel::ROUTINE`].
    routine: String,
    /// From /proc/cpuinfo, first processor.
    cpu: BTreeMap<String, String>,
    /// cpuinfo_max_freq, where cpufreq is there.
    max_khz: Option<u64>,
}

impl Identity {
    /// Of the machine this runs on.
    pub fn of_this_cpu() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let max = fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
        Self::of(&cpuinfo, max.ok().and_then(|text| text.trim().parse().ok()))
    }

    /// From the files' texts.
    pub fn of(cpuinfo: &str, max_khz: Option<u64>) -> Self {
        let first = cpuinfo.split("\n\n").next().unwrap_or_default();
        let pairs = first.lines().filter_map(|line| line.split_once(':'));
        let cpu = pairs
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .filter(|(key, _)| TELLING.contains(&key.as_str()))
            .collect();
        Self { routine: kernel::ROUTINE.to_owned(), cpu, max_khz }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_cpus_apart_by_what_stays() {
        let text = |mhz, stepping| {
            format!(
                "processor\t: 0\nmodel name\t: A\ncpu MHz\t: {mhz}\nstepping\t: {stepping}\n\nmodel name: B"
            )
        };
        assert_eq!(Identity::of(&text(1, 1), None), Identity::of(&text(2, 1), None));
        assert_ne!(Identity::of(&text(1, 1), None), Identity::of(&text(1, 2), None));
        assert_ne!(Identity::of(&text(1, 1), None), Identity::of(&text(1, 1), Some(3_000_000)));
    }
}
