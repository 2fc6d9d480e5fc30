// SPDX-License-Identifier: GPL-2.0-only
//! Where the CPUs lie: from the machine's caches, cores and nodes to the bytes
//! of `struct artis_topology`.

use std::collections::BTreeMap;

use anyhow::Result;

use super::{CpuSet, Partition};
use crate::abi::{MAX_CPUS, MAX_GROUPS, artis_topology};

/// Greatest compute capacity, as in the kernel (SCHED_CAPACITY_SCALE).
const CAPACITY_MAX: usize = 1024;

/// One CPU as the machine describes it. CPUs with the same number share the thing; the
/// numbers mean nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// CPU id.
    pub cpu: usize,
    /// Its core: CPUs with the same one are hardware threads of each other.
    pub core: usize,
    /// Its last-level cache.
    pub llc: usize,
    /// Its NUMA node.
    pub node: usize,
    /// Its compute capacity, in any unit.
    pub capacity: usize,
}

/// Where each online CPU lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(Vec<Place>);

impl Layout {
    /// Of the CPUs in `places`, each of them once; ids from [`MAX_CPUS`] on are left out.
    pub fn new(places: impl IntoIterator<Item = Place>) -> Self {
        let by_cpu: BTreeMap<_, _> = places.into_iter().map(|place| (place.cpu, place)).collect();
        Self(by_cpu.into_values().filter(|place| place.cpu < MAX_CPUS).collect())
    }

    /// Reads it from sysfs.
    ///
    /// The capacity is the kernel's where it tells one for every CPU. Elsewhere frequencies
    /// and the like count only if the machine has cores of clearly different kinds: small
    /// differences say which core boosts best, not how much it computes.
    ///
    /// # Errors
    /// When sysfs lacks what describes a CPU.
    pub fn read() -> Result<Self> {
        let machine = scx_utils::Topology::new()?;
        let exact = machine.all_cpus.values().all(|cpu| cpu.kernel_cpu_capacity.is_some());
        let unequal = machine.has_little_cores();
        let capacity = |cpu: &scx_utils::Cpu| match cpu.kernel_cpu_capacity {
            Some(capacity) if exact => capacity,
            _ if unequal => cpu.cpu_capacity,
            _ => CAPACITY_MAX,
        };
        // a core's number may occur again in another cache: its lowest CPU does not
        let cores = machine.all_llcs.values().flat_map(|llc| llc.cores.values());
        Ok(Self::new(cores.flat_map(|core| {
            let first = core.cpus.keys().next().copied().unwrap_or(core.id);
            core.cpus.values().map(move |cpu| Place {
                cpu: cpu.id,
                core: first,
                llc: cpu.llc_id,
                node: cpu.node_id,
                capacity: capacity(cpu),
            })
        })))
    }

    /// Equal CPUs without anything in common but one cache: for machines that do not say.
    pub fn flat(cpus: &CpuSet) -> Self {
        let place = |cpu| Place { cpu, core: cpu, llc: 0, node: 0, capacity: CAPACITY_MAX };
        Self::new(cpus.iter().map(place))
    }

    /// What BPF is told of it under `partition`. CPUs that are in neither set, or that this
    /// layout does not know, are in group 0.
    pub fn topology(&self, partition: &Partition) -> Box<artis_topology> {
        let mut topology = Box::new(artis_topology {
            group: [0; MAX_CPUS],
            core: std::array::from_fn(|cpu| cpu as u16),
            capacity: [CAPACITY_MAX as u16; MAX_CPUS],
        });
        let mut cores = BTreeMap::new(); // to their lowest CPU: places are in the order of ids
        for place in &self.0 {
            cores.entry(place.core).or_insert(place.cpu);
        }
        let greatest = self.0.iter().map(|place| place.capacity).max().unwrap_or(0).max(1);
        for place in &self.0 {
            topology.core[place.cpu] = cores[&place.core] as u16;
            topology.capacity[place.cpu] =
                (place.capacity * CAPACITY_MAX / greatest).clamp(1, CAPACITY_MAX) as u16;
        }
        for (cpu, group) in self.groups(partition) {
            topology.group[cpu] = group as u16;
        }
        topology
    }

    /// The CPUs of `set`, in the order of ids.
    fn of<'a>(&'a self, set: &'a CpuSet) -> impl Iterator<Item = &'a Place> {
        self.0.iter().filter(|place| set.contains(place.cpu))
    }

    /// The group of each CPU of the two sets. The NRT CPUs that share a last-level cache and have
    /// the same capacity are one; numbers are in the order of their lowest CPU. Where there are
    /// more groups than [`MAX_GROUPS`], neighbours share a number.
    fn groups(&self, partition: &Partition) -> Vec<(usize, usize)> {
        let mut lowest: Vec<&Place> = Vec::new(); // of each group
        let mut groups = Vec::new();
        for place in self.of(&partition.nrt) {
            let is_like =
                |first: &&Place| (first.llc, first.capacity) == (place.llc, place.capacity);
            let group = lowest.iter().position(is_like).unwrap_or_else(|| {
                lowest.push(place);
                lowest.len() - 1
            });
            groups.push((place.cpu, group));
        }
        let mut guests = vec![0; lowest.len()];
        for place in self.of(&partition.rt) {
            if let Some(group) = nearest(place, &lowest, &guests) {
                guests[group] += 1;
                groups.push((place.cpu, group));
            }
        }
        let count = lowest.len().max(MAX_GROUPS);
        groups.into_iter().map(|(cpu, group)| (cpu, group * MAX_GROUPS / count)).collect()
    }
}

/// Has some core several hardware threads?
pub fn has_smt(topology: &artis_topology) -> bool {
    topology.core.iter().enumerate().any(|(cpu, core)| usize::from(*core) != cpu)
}

/// The group to which an RT CPU at `place` belongs: one of its cache, else one of its node, else
/// any; of these the one whose capacity is most like its own, then the one with the fewest RT CPUs
/// so far (`guests`). `lowest` has the lowest CPU of each group. `None`: there is no group.
fn nearest(place: &Place, lowest: &[&Place], guests: &[usize]) -> Option<usize> {
    (0..lowest.len()).min_by_key(|group| {
        let other = lowest[*group];
        let distance = match () {
            () if other.llc == place.llc => 0,
            () if other.node == place.node => 1,
            () => 2,
        };
        (distance, other.capacity.abs_diff(place.capacity), guests[*group])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// CPU, core, cache, node, capacity.
    fn layout(places: &[(usize, usize, usize, usize, usize)]) -> Layout {
        Layout::new(places.iter().map(|&(cpu, core, llc, node, capacity)| Place {
            cpu,
            core,
            llc,
            node,
            capacity,
        }))
    }

    fn partition(rt: &str, nrt: &str) -> Partition {
        Partition { rt: rt.parse().expect("a set"), nrt: nrt.parse().expect("a set") }
    }

    #[test]
    fn a_plain_machine() {
        let layout = Layout::flat(&"0-3".parse().expect("a set"));
        let topology = layout.topology(&partition("2-3", "0-1"));
        assert_eq!(topology.group[..4], [0; 4]);
        assert_eq!(topology.core[..4], [0, 1, 2, 3]);
        assert_eq!(topology.capacity[..4], [1024; 4]);
        assert!(!has_smt(&topology));
    }

    #[test]
    fn caches_are_groups_with_dense_numbers() {
        // two caches of three CPUs, ids interleaved, with the kernel's odd numbers
        let places: Vec<_> = (0..6).map(|cpu| (cpu, cpu, [70, 20][cpu % 2], 0, 1)).collect();
        let topology = layout(&places).topology(&partition("4-5", "0-3"));
        assert_eq!(topology.group[..6], [0, 1, 0, 1, 0, 1]);
        // by the lowest NRT CPU, not by the lowest of all
        let topology = layout(&places).topology(&partition("0,5", "1-4"));
        assert_eq!(topology.group[..6], [1, 0, 1, 0, 1, 0]);
        // CPU 3 and what no set has are in group 0
        let topology = layout(&places).topology(&partition("0", "2,4-5"));
        assert_eq!(topology.group[..7], [0, 0, 0, 0, 0, 1, 0]);
    }

    #[test]
    fn capacities_are_groups_and_an_rt_cpu_is_in_the_one_like_it() {
        // little 0-3 (446 of 1024), big 4-7, middle 8, one cache
        let of = |cpu| [223, 223, 223, 223, 512, 512, 512, 512, 400][cpu];
        let places: Vec<_> = (0..9).map(|cpu| (cpu, cpu, 0, 0, of(cpu))).collect();
        let topology = layout(&places).topology(&partition("2,7-8", "0-1,3-6"));
        assert_eq!(topology.capacity[..9], [446, 446, 446, 446, 1024, 1024, 1024, 1024, 800]);
        assert_eq!(topology.group[..9], [0, 0, 0, 0, 1, 1, 1, 1, 1]);
        // the cache comes first, whatever the capacities are
        let places = [(0, 0, 0, 0, 1), (1, 1, 1, 0, 2), (2, 2, 0, 0, 2)];
        let topology = layout(&places).topology(&partition("2", "0-1"));
        assert_eq!(topology.group[..3], [0, 1, 0]);
    }

    #[test]
    fn an_rt_cpu_with_a_cache_of_its_own_is_in_a_group_of_its_node() {
        // node 0: caches 0 to 2; node 1: cache 3; node 2: cache 4
        let places = [
            (0, 0, 0, 0, 1),
            (1, 1, 1, 0, 1),
            (2, 2, 1, 0, 1),
            (3, 3, 2, 0, 1),
            (4, 4, 2, 0, 1),
            (5, 5, 3, 1, 1),
            (6, 6, 4, 2, 1),
        ];
        let topology = layout(&places).topology(&partition("1-2,6", "0,3-5"));
        // they spread over the groups of the node; CPU 6 is in the group that has none
        assert_eq!(topology.group[..7], [0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn hardware_threads_are_of_one_core() {
        // cores (0,4) (1,5) (2,6) (3,7)
        let places: Vec<_> = (0..8).map(|cpu| (cpu, cpu % 4, 0, 0, 1)).collect();
        let topology = layout(&places).topology(&partition("2-3", "0-1,4-7"));
        assert_eq!(topology.core[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(topology.group[..8], [0; 8]);
        assert!(has_smt(&topology));
    }

    #[test]
    fn numbers_are_bounded() {
        let places: Vec<_> = (0..1100).map(|cpu| (cpu, cpu, cpu / 8, 0, 1 + cpu / 8)).collect();
        let topology = layout(&places).topology(&partition("0", "1-1023"));
        let groups = &topology.group;
        assert!(groups.iter().all(|group| usize::from(*group) < MAX_GROUPS));
        assert!(groups.is_sorted() && groups[0] == 0 && groups[1023] == MAX_GROUPS as u16 - 1);
        assert!(groups.windows(2).all(|pair| pair[1] - pair[0] <= 1), "neighbours share");
        assert_eq!((topology.capacity[0], topology.capacity[1023]), (8, 1024));
    }

    #[test]
    fn this_machine_can_be_read() {
        // containers may hide what sysfs has elsewhere
        let Ok(layout) = Layout::read() else { return };
        let cpus: CpuSet = layout.0.iter().map(|place| place.cpu).collect();
        assert!(!cpus.is_empty());
        let rt: CpuSet = cpus.iter().last().into_iter().collect();
        let groups = layout.groups(&Partition { nrt: cpus.minus(&rt), rt });
        assert_eq!(groups.len(), if cpus.len() > 1 { cpus.len() } else { 0 });
    }

    proptest! {
        #[test]
        fn each_group_has_an_nrt_cpu(
            of_cpus in prop::collection::vec((0..7_usize, 0..3_usize, 1..3_usize, any::<bool>()), 1..200),
        ) {
            let places = of_cpus.iter().enumerate();
            let places: Vec<_> =
                places.map(|(cpu, (llc, node, capacity, _))| (cpu, cpu, *llc, *node, *capacity)).collect();
            let rt: CpuSet = (1..of_cpus.len()).filter(|cpu| of_cpus[*cpu].3).collect();
            let nrt = (0..of_cpus.len()).collect::<CpuSet>().minus(&rt);
            let groups = layout(&places).groups(&Partition { rt, nrt: nrt.clone() });
            let groups: BTreeMap<_, _> = groups.into_iter().collect();
            prop_assert_eq!(groups.len(), of_cpus.len());
            let with_nrt: BTreeSet<_> = nrt.iter().map(|cpu| groups[&cpu]).collect();
            prop_assert!(groups.values().all(|group| with_nrt.contains(group)));
            prop_assert_eq!(with_nrt.last().map(|last| last + 1), Some(with_nrt.len()));
        }
    }
}
