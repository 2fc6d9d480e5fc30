// SPDX-License-Identifier: GPL-2.0-only
//! From what the user wants and the machine as it is now to what a scheduler
//! starts with.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::abi::{artis_policy, artis_topology};
use crate::cli::Opts;
use crate::config::{CallTable, CpuSet, Layout, Machine, Partition, Policy, SYSFS_CPU};
use crate::exit::Failure;

/// What the options said, and `scx_artis ctl` since.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The RT CPUs.
    pub rt: CpuSet,
    /// The policy constants.
    pub values: Policy,
    /// Number of changes so far.
    pub seq: u32,
}

/// What a scheduler is started with; kept true while it runs.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What it was made from.
    pub wanted: Wanted,
    /// The two sets of CPUs.
    pub partition: Partition,
    /// The policy constants as BPF has them.
    pub policy: artis_policy,
    /// Where the CPUs lie.
    pub topology: Box<artis_topology>,
    /// How long a runnable task may wait, ms; `None`: what suits the kernel.
    pub watchdog_ms: Option<u32>,
    /// Size of the kernel's debug dump, bytes; 0: its default.
    pub exit_dump_len: u32,
    /// Size of the ring buffer that records go through, bytes: a power of two.
    pub ring_bytes: u32,
    /// [`hotplug_seq`] before the machine was looked at.
    pub hotplug_seq: u64,
    /// What is unwise about it, in sentences.
    pub warnings: Vec<String>,
    /// Options for libbpf.
    pub libbpf: scx_utils::libbpf_clap_opts::LibbpfOpts,
}

/// The machine as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its CPUs.
    pub machine: Machine,
    /// Where they lie.
    pub layout: Layout,
}

impl Seen {
    /// Looks at this machine. One that does not tell where its CPUs lie counts as one of
    /// equal CPUs with one cache.
    ///
    /// # Errors
    /// When not even its CPUs can be read.
    pub fn now() -> Result<Self> {
        let (seen, unknown) = settled(Self::read)?;
        if let Some(error) = unknown {
            log::warn!("caches and nodes are unknown, and taken for one of each: {error}");
        }
        Ok(seen)
    }

    /// Reads only which CPUs are online now.
    ///
    /// # Errors
    /// When that cannot be read.
    pub fn online() -> Result<CpuSet> {
        Machine::online(Path::new(SYSFS_CPU))
    }

    /// Reads once; returns also why the caches and nodes are unknown, if they are.
    fn read() -> Result<(Self, Option<String>)> {
        let machine = Machine::read(Path::new(SYSFS_CPU))?;
        let (layout, unknown) = match Layout::read() {
            Ok(layout) => (layout, None),
            Err(error) => (Layout::flat(&machine.online), Some(format!("{error:#}"))),
        };
        Ok((Self { machine, layout }, unknown))
    }
}

/// How many CPUs have gone or come since boot, whatever schedules their tasks (`scx_hotplug_seq`,
/// kernel/sched/ext.c); 0 where that cannot be read.
fn hotplug_seq() -> u64 {
    let text = fs::read_to_string("/sys/kernel/sched_ext/hotplug_seq").unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Most readings of a machine whose CPUs come and go.
const READINGS_MAX: usize = 10;

/// Reads until two readings are the same, at most [`READINGS_MAX`] times.
///
/// As a CPU comes or goes the kernel writes the files of those that share a cache with it one after
/// the other, so one reading may find a cache that has two lists of CPUs, and take it for two.
fn settled<T: PartialEq>(mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut last = read()?;
    for _ in 1..READINGS_MAX {
        let next = read()?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(last)
}

impl Setup {
    /// Has no CPU gone or come since it was made, and does none go now? For a start: CPUs that do so
    /// later are told by BPF.
    pub fn is_current(&self) -> bool {
        let cpus = self.partition.rt.or(&self.partition.nrt);
        hotplug_seq() == self.hotplug_seq && Seen::online().is_ok_and(|online| online == cpus)
    }

    /// What `opts`, `wanted` and this machine make.
    ///
    /// # Errors
    /// When they do not go together.
    pub fn new(opts: &Opts, wanted: Wanted) -> Result<Self, Failure> {
        wanted.values.validate()?;
        let calls = CallTable::new(opts.strict, &opts.calls)?;
        let hotplug_seq = hotplug_seq();
        let Seen { machine, layout } = Seen::now()?;
        let nr_cpus = machine.possible.iter().last().map_or(0, |cpu| cpu + 1);
        let partition = Partition::new(&wanted.rt, &machine)?;
        Ok(Self {
            warnings: partition.split_cores(&machine),
            watchdog_ms: opts.watchdog_ms,
            policy: wanted.values.constants(&partition, &calls, nr_cpus, wanted.seq),
            topology: layout.topology(&partition),
            partition,
            wanted,
            exit_dump_len: opts.exit_dump_len,
            ring_bytes: opts.output.ring_kb * 1024,
            hotplug_seq,
            libbpf: opts.libbpf.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_counts_when_the_next_is_the_same() {
        for (readings, expected) in
            [(vec![1, 1, 2], 1), (vec![1, 2, 2, 3], 2), (vec![1, 2, 1, 1], 1)]
        {
            let mut left = readings.clone().into_iter();
            let read = || Ok(left.next().expect("no more are needed"));
            assert_eq!(settled(read).expect("read"), expected, "{readings:?}");
        }
        let mut nr = 0;
        let restless = settled(|| {
            nr += 1;
            Ok(nr)
        });
        assert_eq!(restless.expect("the last one"), READINGS_MAX);
        assert!(settled(|| -> Result<u32> { anyhow::bail!("no sysfs") }).is_err());
    }
}
