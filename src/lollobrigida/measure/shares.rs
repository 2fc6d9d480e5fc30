// SPDX-License-Identifier: GPL-2.0-only
//! What each CPU did with the time of the run.

use std::collections::BTreeMap;

use crate::measure::cpu_stat::CpuStat;
use crate::result::Cpu;

/// Time of the scene's own tasks on each CPU, ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTime {
    /// FIFO, RR and DEADLINE tasks.
    pub rt_ns: BTreeMap<u32, u64>,
    /// All others.
    pub fair_ns: BTreeMap<u32, u64>,
}

/// The shares of `makespan_ns`, by CPU. `own`: exact to the switch; `ticks`: in whole ticks
/// of `tick_ns`. The exact figures are taken as they are; the others get what these leave
/// (idle, then interrupts), and `other` is the rest, so that they sum to 1. Without `own`
/// idle and irq stand alone.
#[must_use]
pub fn cpus(ticks: &CpuStat, tick_ns: u64, makespan_ns: u64, own: Option<&OwnTime>) -> Vec<Cpu> {
    let share = |ns: u64| ns as f64 / makespan_ns.max(1) as f64;
    let cpu = |(&cpu, ticks): (&u32, &crate::measure::cpu_stat::Ticks)| {
        let time = |by_cpu: &BTreeMap<u32, u64>| share(by_cpu.get(&cpu).copied().unwrap_or(0));
        let mut left = 1.0_f64;
        let mut take = |wanted: f64| {
            let taken = wanted.min(left);
            left -= taken;
            taken
        };
        let rt = own.map(|own| take(time(&own.rt_ns)));
        let fair = own.map(|own| take(time(&own.fair_ns)));
        let idle = take(share(ticks.idle * tick_ns));
        let irq = take(share(ticks.irq * tick_ns));
        Cpu { cpu, idle, irq, rt, fair, other: own.map(|_| left) }
    };
    ticks.0.iter().map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cpu_stat::Ticks;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn one_cpu(idle: u64, irq: u64) -> CpuStat {
        CpuStat(BTreeMap::from([(0, Ticks { idle, irq, steal: 0 })]))
    }

    #[test]
    fn the_rest_is_other() {
        let own = OwnTime {
            rt_ns: BTreeMap::from([(0, 200 * MS)]),
            fair_ns: BTreeMap::from([(0, 300 * MS), (1, 999 * MS)]),
        };
        let cpus = cpus(&one_cpu(40, 5), 10 * MS, 1000 * MS, Some(&own));
        assert_eq!(cpus.len(), 1);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        near(cpus[0].rt.expect("known"), 0.2);
        near(cpus[0].fair.expect("known"), 0.3);
        near(cpus[0].idle, 0.4);
        near(cpus[0].irq, 0.05);
        near(cpus[0].other.expect("known"), 0.05);
    }

    #[test]
    fn without_the_tasks_times_the_rest_is_not_known() {
        let cpus = cpus(&one_cpu(40, 5), 10 * MS, 1000 * MS, None);
        assert_eq!((cpus[0].rt, cpus[0].fair, cpus[0].other), (None, None, None));
    }

    proptest! {
        #[test]
        fn sum_to_one_whatever_was_measured(
            idle in 0u64..500, irq in 0u64..500, rt in 0u64..5000, fair in 0u64..5000,
        ) {
            let own = OwnTime {
                rt_ns: BTreeMap::from([(0, rt * MS)]),
                fair_ns: BTreeMap::from([(0, fair * MS)]),
            };
            for cpu in cpus(&one_cpu(idle, irq), 10 * MS, 1000 * MS, Some(&own)) {
                let parts = [cpu.idle, cpu.irq, cpu.rt.expect("known"),
                    cpu.fair.expect("known"), cpu.other.expect("known")];
                prop_assert!(parts.iter().all(|part| (0.0..=1.0).contains(part)));
                prop_assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            }
        }
    }
}
