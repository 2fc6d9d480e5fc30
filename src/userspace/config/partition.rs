// SPDX-License-Identifier: GPL-2.0-only
//! The partition of the CPUs: every online CPU is in exactly one of two sets,
//! and neither is empty.

use super::{ConfigError, CpuSet, Machine};
use crate::abi::{CpuKind, MAX_CPUS};

/// The RT and the NRT CPUs. Neither set is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// CPUs kept clear for hard real-time tasks.
    pub rt: CpuSet,
    /// CPUs for everyone.
    pub nrt: CpuSet,
}

impl Partition {
    /// Splits the online CPUs of `machine` into `rt` and the rest.
    ///
    /// # Errors
    /// An unknown or offline CPU in `rt`, or an empty set on either side.
    pub fn new(rt: &CpuSet, machine: &Machine) -> Result<Self, ConfigError> {
        let unknown = rt.minus(&machine.possible);
        if !unknown.is_empty() {
            return Err(ConfigError::UnknownCpus { unknown, possible: machine.possible.clone() });
        }
        let offline = rt.minus(&machine.online);
        let first = offline.iter().next();
        if let Some(first) = first {
            return Err(ConfigError::OfflineCpus {
                offline,
                online: machine.online.clone(),
                first,
            });
        }
        Self::of_online(rt, machine)
    }

    /// The same after a CPU came or went: an RT CPU that is gone is left out.
    ///
    /// Returns the partition and the RT CPUs that are missing from it.
    ///
    /// # Errors
    /// When one of the sets has become empty.
    pub fn after_hotplug(rt: &CpuSet, machine: &Machine) -> Result<(Self, CpuSet), ConfigError> {
        Ok((Self::of_online(&rt.and(&machine.online), machine)?, rt.minus(&machine.online)))
    }

    fn of_online(rt: &CpuSet, machine: &Machine) -> Result<Self, ConfigError> {
        let nrt = machine.online.minus(rt);
        if rt.is_empty() {
            return Err(ConfigError::NoRtCpu { online: machine.online.clone() });
        }
        if nrt.is_empty() {
            return Err(ConfigError::NoNrtCpu { online: machine.online.clone() });
        }
        Ok(Self { rt: rt.clone(), nrt })
    }

    /// The CPUs of both sets, in rising order.
    pub fn cpus(&self) -> impl Iterator<Item = usize> + use<> {
        let mut cpus: Vec<_> = self.rt.iter().chain(self.nrt.iter()).collect();
        cpus.sort_unstable();
        cpus.into_iter()
    }

    /// Which set `cpu` is in.
    pub fn kind(&self, cpu: usize) -> CpuKind {
        if self.rt.contains(cpu) {
            CpuKind::Rt
        } else if self.nrt.contains(cpu) {
            CpuKind::Nrt
        } else {
            CpuKind::Absent
        }
    }

    /// The set of each CPU as `struct artis_policy` has it.
    pub fn kinds(&self) -> [u8; MAX_CPUS] {
        std::array::from_fn(|cpu| self.kind(cpu) as u8)
    }

    /// Cores whose hardware threads are not all in one set, as sentences that
    /// say what it costs and what to do.
    pub fn split_cores(&self, machine: &Machine) -> Vec<String> {
        let warn = |group: &CpuSet| {
            let (rt, nrt) = (group.and(&self.rt), group.and(&self.nrt));
            (!rt.is_empty() && !nrt.is_empty()).then(|| {
                format!(
                    "CPUs {group} are hardware threads of one core, but {rt} is RT and {nrt} is \
                     not: work on {nrt} slows real-time tasks on {rt} down. Put {group} into \
                     --rt-cpus together, or take {nrt} offline \
                     (echo 0 > /sys/devices/system/cpu/cpuN/online)"
                )
            })
        };
        machine.smt_groups.iter().filter_map(warn).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().expect("a CPU list")
    }

    fn machine() -> Machine {
        Machine {
            possible: set("0-7"),
            online: set("0-5"),
            smt_groups: vec![set("0,3"), set("1,4"), set("2,5")],
        }
    }

    #[test]
    fn every_online_cpu_is_in_one_set() {
        let partition = Partition::new(&set("2,5"), &machine()).expect("fits");
        assert_eq!(partition.nrt, set("0-1,3-4"));
        let kinds: Vec<_> = (0..8).map(|cpu| partition.kind(cpu)).collect();
        use CpuKind::{Absent, Nrt, Rt};
        assert_eq!(kinds, [Nrt, Nrt, Rt, Nrt, Nrt, Rt, Absent, Absent]);
        assert!(partition.split_cores(&machine()).is_empty());
    }

    #[test]
    fn errors_name_the_cpus() {
        let error = |rt: &str| Partition::new(&set(rt), &machine()).expect_err("unfit").to_string();
        assert!(error("2,9").contains("CPU 9"), "{}", error("2,9"));
        assert!(error("5-7").contains("6-7"), "{}", error("5-7"));
        assert!(error("5-7").contains("cpu6/online"), "{}", error("5-7"));
        assert!(error("0-5").contains("no CPU is left"), "{}", error("0-5"));
        assert!(error("").contains("no RT CPU"), "{}", error(""));
    }

    #[test]
    fn split_core_names_the_pair() {
        let partition = Partition::new(&set("2-3"), &machine()).expect("fits");
        let warnings = partition.split_cores(&machine());
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].contains("CPUs 0,3"), "{warnings:?}");
        assert!(warnings[1].contains("Put 2,5 into --rt-cpus"), "{warnings:?}");
    }

    #[test]
    fn hotplug_keeps_going_without_a_lost_cpu() {
        let mut machine = machine();
        machine.online = set("0-4");
        let (partition, lost) = Partition::after_hotplug(&set("4-5"), &machine).expect("fits");
        assert_eq!((partition.rt, partition.nrt, lost), (set("4"), set("0-3"), set("5")));

        machine.online = set("0-3");
        let error = Partition::after_hotplug(&set("4-5"), &machine).expect_err("none left");
        assert!(matches!(error, ConfigError::NoRtCpu { .. }), "{error}");
    }
}
