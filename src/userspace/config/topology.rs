// SPDX-License-Identifier: GPL-2.0-only
//! Where the CPUs lie: from the machine's caches, cores and nodes to the bytes
//! of `struct artis_topology`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::{CpuSet, Partition};
use crate::abi::{MAX_CPUS, MAX_LLCS, NEAR, NO_CPU, artis_topology};

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
    /// layout does not know, are in cache 0 and near to nothing.
    pub fn topology(&self, partition: &Partition) -> Box<artis_topology> {
        let mut topology = Box::new(artis_topology {
            llc: [0; MAX_CPUS],
            core: std::array::from_fn(|cpu| cpu as u16),
            capacity: [CAPACITY_MAX as u16; MAX_CPUS],
            near: [[NO_CPU; NEAR]; MAX_CPUS],
        });
        let llcs = self.dense_llcs();
        let mut cores = BTreeMap::new(); // to their lowest CPU: places are in the order of ids
        for place in &self.0 {
            cores.entry(place.core).or_insert(place.cpu);
        }
        let near = Near::new(self, partition);
        let greatest = self.0.iter().map(|place| place.capacity).max().unwrap_or(0).max(1);
        for place in &self.0 {
            topology.llc[place.cpu] = llcs[&place.llc];
            topology.core[place.cpu] = cores[&place.core] as u16;
            topology.capacity[place.cpu] =
                (place.capacity * CAPACITY_MAX / greatest).clamp(1, CAPACITY_MAX) as u16;
            for (entry, cpu) in topology.near[place.cpu].iter_mut().zip(near.to(place)) {
                *entry = cpu as u16;
            }
        }
        topology
    }

    /// Numbers from 0 for the caches, in the order of their lowest CPU. Where there are more
    /// than [`MAX_LLCS`], neighbours share a number.
    fn dense_llcs(&self) -> BTreeMap<usize, u16> {
        let mut order: Vec<usize> = Vec::new();
        for place in &self.0 {
            if !order.contains(&place.llc) {
                order.push(place.llc);
            }
        }
        let count = order.len().max(MAX_LLCS);
        let number = |(i, llc): (usize, usize)| (llc, (i * MAX_LLCS / count) as u16);
        order.into_iter().enumerate().map(number).collect()
    }
}

/// Who is near to whom.
struct Near<'a> {
    rt: &'a CpuSet,
    nrt: Vec<&'a Place>,
    /// Cores with an RT CPU.
    rt_cores: BTreeSet<usize>,
}

impl<'a> Near<'a> {
    fn new(layout: &'a Layout, partition: &'a Partition) -> Self {
        let of = |set: &'a CpuSet| layout.0.iter().filter(|place| set.contains(place.cpu));
        let rt_cores = of(&partition.rt).map(|place| place.core).collect();
        Self { rt: &partition.rt, nrt: of(&partition.nrt).collect(), rt_cores }
    }

    /// The other NRT CPUs, nearest to `place` first: same cache, same node, elsewhere. At the
    /// same distance, first those whose core has no RT CPU, then those beside another RT CPU,
    /// last those on the core of `place` itself; then greater capacity. What is equal begins
    /// at another CPU for each RT CPU, so that they do not all try the same one first.
    fn to(&self, place: &Place) -> Vec<usize> {
        let own_turn = self.rt.iter().position(|cpu| cpu == place.cpu).unwrap_or(0);
        let count = self.nrt.len();
        let rank = |(slot, other): (usize, &&Place)| {
            let distance = match () {
                () if other.llc == place.llc => 0,
                () if other.node == place.node => 1,
                () => 2,
            };
            let sharing = match () {
                () if other.core == place.core => 2,
                () if self.rt_cores.contains(&other.core) => 1,
                () => 0,
            };
            let turn = (slot + count - own_turn % count) % count;
            (distance, sharing, Reverse(other.capacity), turn, other.cpu)
        };
        let others = self.nrt.iter().enumerate().filter(|(_, other)| other.cpu != place.cpu);
        let mut near: Vec<_> = others.map(rank).collect();
        near.sort_unstable();
        near.into_iter().map(|(.., cpu)| cpu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn near(topology: &artis_topology, cpu: usize) -> Vec<u16> {
        let list = topology.near[cpu];
        let end = list.iter().position(|cpu| *cpu == NO_CPU).unwrap_or(NEAR);
        assert!(list[end..].iter().all(|cpu| *cpu == NO_CPU), "{list:?} goes on after its end");
        list[..end].to_vec()
    }

    #[test]
    fn a_plain_machine() {
        let layout = Layout::flat(&"0-3".parse().expect("a set"));
        let topology = layout.topology(&partition("2-3", "0-1"));
        assert_eq!(topology.llc[..4], [0, 0, 0, 0]);
        assert_eq!(topology.core[..4], [0, 1, 2, 3]);
        assert_eq!(topology.capacity[..4], [1024; 4]);
        assert_eq!(near(&topology, 2), [0, 1]);
        assert_eq!(near(&topology, 3), [1, 0], "each RT CPU begins with another one");
        assert_eq!(near(&topology, 0), [1], "not itself");
        assert_eq!(near(&topology, 4), [0; 0], "no such CPU");
    }

    #[test]
    fn caches_come_first_and_are_dense() {
        // two caches of four CPUs, ids interleaved, with the kernel's odd numbers
        let layout = layout(&[
            (0, 0, 70, 0, 1),
            (1, 1, 20, 0, 1),
            (2, 2, 70, 0, 1),
            (3, 3, 20, 0, 1),
            (4, 4, 70, 0, 1),
            (5, 5, 20, 0, 1),
        ]);
        let topology = layout.topology(&partition("4-5", "0-3"));
        assert_eq!(topology.llc[..6], [0, 1, 0, 1, 0, 1]);
        assert_eq!(near(&topology, 4), [0, 2, 1, 3]);
        assert_eq!(near(&topology, 5), [1, 3, 2, 0]);
    }

    #[test]
    fn hardware_threads_of_real_time_cores_come_last() {
        // cores (0,4) (1,5) (2,6) (3,7)
        let places: Vec<_> = (0..8).map(|cpu| (cpu, cpu % 4, 0, 0, 1)).collect();
        let topology = layout(&places).topology(&partition("2-3", "0-1,4-7"));
        assert_eq!(topology.core[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(near(&topology, 2), [0, 1, 4, 5, 7, 6], "7 is beside RT CPU 3, 6 its own");
        assert_eq!(near(&topology, 3), [1, 4, 5, 0, 6, 7]);
    }

    #[test]
    fn the_cache_counts_more_than_the_core() {
        // two caches of one core with two threads each
        let places: Vec<_> = (0..4).map(|cpu| (cpu, cpu / 2, cpu / 2, 0, 1)).collect();
        let topology = layout(&places).topology(&partition("0", "1-3"));
        assert_eq!(near(&topology, 0), [1, 2, 3]);
    }

    #[test]
    fn greater_capacity_comes_first() {
        // little 0-3 (446 of 1024), big 4-5, one cache
        let places: Vec<_> =
            (0..6).map(|cpu| (cpu, cpu, 0, 0, if cpu < 4 { 223 } else { 512 })).collect();
        let topology = layout(&places).topology(&partition("0", "1-5"));
        assert_eq!(topology.capacity[..6], [446, 446, 446, 446, 1024, 1024]);
        assert_eq!(near(&topology, 0), [4, 5, 1, 2, 3]);
    }

    #[test]
    fn nodes_come_after_caches() {
        // node 0: caches 0 and 1; node 1: cache 2
        let layout = layout(&[
            (0, 0, 0, 0, 1),
            (1, 1, 0, 0, 1),
            (2, 2, 1, 0, 1),
            (3, 3, 1, 0, 1),
            (4, 4, 2, 1, 1),
            (5, 5, 2, 1, 1),
        ]);
        let topology = layout.topology(&partition("3,5", "0-2,4"));
        assert_eq!(near(&topology, 3), [2, 0, 1, 4]);
        assert_eq!(near(&topology, 5), [4, 1, 2, 0]);
    }

    #[test]
    fn lists_and_numbers_are_bounded() {
        let places: Vec<_> = (0..1100).map(|cpu| (cpu, cpu, cpu / 8, 0, cpu)).collect();
        let topology = layout(&places).topology(&partition("0", "1-1023"));
        assert_eq!(near(&topology, 0).len(), NEAR);
        assert_eq!(near(&topology, 0)[..7], [7, 6, 5, 4, 3, 2, 1]);
        let llcs = &topology.llc;
        assert!(llcs.iter().all(|llc| usize::from(*llc) < MAX_LLCS));
        assert!(llcs.is_sorted() && llcs[0] == 0 && llcs[1023] == MAX_LLCS as u16 - 1);
        assert!(llcs.windows(2).all(|pair| pair[1] - pair[0] <= 1), "neighbours share");
        assert_eq!((topology.capacity[0], topology.capacity[1023]), (1, 1024));
    }

    #[test]
    fn this_machine_can_be_read() {
        // containers may hide what sysfs has elsewhere
        let Ok(layout) = Layout::read() else { return };
        let cpus: CpuSet = layout.0.iter().map(|place| place.cpu).collect();
        assert!(!cpus.is_empty());
        let rt: CpuSet = cpus.iter().last().into_iter().collect();
        let topology = layout.topology(&Partition { nrt: cpus.minus(&rt), rt: rt.clone() });
        let last = rt.iter().next().expect("a CPU");
        assert_eq!(near(&topology, last).len(), (cpus.len() - 1).min(NEAR));
    }
}
