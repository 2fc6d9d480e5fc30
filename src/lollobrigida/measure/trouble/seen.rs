// SPDX-License-Identifier: GPL-2.0-only
//! Trouble that a run itself shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::machine::list;
use crate::measure::cpu_stat::CpuStat;
use crate::result::{Cpu, Warning};

/// Share of a CPU above which others' work is told.
const NOISE: f64 = 0.03;
/// Share of the time that RT tasks may have above which they could have been throttled.
const NEAR_THROTTLING: f64 = 0.98;

/// `noisy`: others had more than 3 % of a CPU, and more than the two ticks (of `tick_ns`)
/// that idle and interrupt time may be wrong by.
#[must_use]
pub fn noisy(cpus: &[Cpu], tick_ns: u64, makespan_ns: u64) -> Option<Warning> {
    let bar = NOISE.max(2.0 * tick_ns as f64 / makespan_ns.max(1) as f64);
    let others = |cpu: &Cpu| Some((cpu.cpu, cpu.other.filter(|&other| other > bar)?));
    let noisy: Vec<(u32, f64)> = cpus.iter().filter_map(others).collect();
    let most = noisy.iter().map(|(_, other)| *other).reduce(f64::max)?;
    Some(Warning::new(
        "noisy",
        format!(
            "tasks that are not the scene's, or a hypervisor, had up to {:.0} % of CPUs {}: they \
             took time that the scheduler could not give: stop other work, and compare again",
            most * 100.0,
            list(noisy.iter().map(|(cpu, _)| *cpu))
        ),
    ))
}

/// `steal`: the hypervisor ran something else for more than 1 %.
#[must_use]
pub fn steal(ticks: &CpuStat, tick_ns: u64, makespan_ns: u64) -> Option<Warning> {
    let stolen: u64 = ticks.0.values().map(|ticks| ticks.steal * tick_ns).sum();
    let share = stolen as f64 / (makespan_ns.max(1) * ticks.0.len().max(1) as u64) as f64;
    if share <= 0.01 {
        return None;
    }
    Some(Warning::new(
        "steal",
        format!(
            "the hypervisor took {:.1} % of the CPUs' time for others: a task that seems to run is \
             then standing: use a machine of your own, or more runs",
            share * 100.0
        ),
    ))
}

/// `throttled`: on a CPU FIFO and RR tasks had nearly all that the kernel lets them have.
/// `runtime_us` and `period_us` are /proc/sys/kernel/sched_rt_{runtime,period}_us.
#[must_use]
pub fn rt_throttled(cpus: &[Cpu], runtime_us: i64, period_us: i64) -> Option<Warning> {
    // -1: no bound
    if runtime_us < 0 || period_us <= 0 || runtime_us >= period_us {
        return None;
    }
    let bound = runtime_us as f64 / period_us as f64;
    let near = |cpu: &&Cpu| cpu.rt.is_some_and(|rt| rt >= bound * NEAR_THROTTLING);
    let near: Vec<u32> = cpus.iter().filter(near).map(|cpu| cpu.cpu).collect();
    if near.is_empty() {
        return None;
    }
    Some(Warning::new(
        "throttled",
        format!(
            "real-time tasks had all of CPUs {} that the kernel lets them have ({:.0} % of each \
             {period_us} µs): they may have been held back in favour of others, and seem late \
             through no fault of the scheduler: let the scene ask for less, or \
             echo -1 > /proc/sys/kernel/sched_rt_runtime_us, with which a hog can stop the machine",
            list(near),
            bound * 100.0
        ),
    ))
}

/// [`rt_throttled`] with this kernel's bound.
#[must_use]
pub fn rt_throttled_here(cpus: &[Cpu]) -> Option<Warning> {
    let read = |what: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{what}_us"));
        text.ok()?.trim().parse().ok()
    };
    rt_throttled(cpus, read("runtime")?, read("period")?)
}

/// `lost`: switch records that did not fit.
#[must_use]
pub fn lost(records: u64) -> Option<Warning> {
    (records > 0).then(|| {
        Warning::new(
            "lost",
            format!(
                "{records} switches are not in the timeline, since they came faster than they could \
                 be kept: it has gaps, the other figures have not. Make the scene shorter \
                 (--scale), or give the runner CAP_IPC_LOCK for larger buffers"
            ),
        )
    })
}

/// How often each CPU was throttled by heat, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heat(BTreeMap<u32, u64>);

impl Heat {
    /// Reads `root`, which is [`super::machine::SYS_CPU`]; machines without the counters
    /// have none.
    #[must_use]
    pub fn read(root: &Path, cpus: &[u32]) -> Self {
        let count = |cpu: &u32| {
            let dir = root.join(format!("cpu{cpu}/thermal_throttle"));
            let read = |file: &str| -> Option<u64> {
                fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
            };
            let counts = ["core_throttle_count", "package_throttle_count"].map(read);
            counts.iter().any(Option::is_some).then(|| (*cpu, counts.iter().flatten().sum()))
        };
        Self(cpus.iter().filter_map(count).collect())
    }

    /// `throttled`: the machine was too hot since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Option<Warning> {
        let more = |(cpu, count): (&u32, &u64)| (count > earlier.0.get(cpu)?).then_some(*cpu);
        let hot: Vec<u32> = self.0.iter().filter_map(more).collect();
        (!hot.is_empty()).then(|| {
            Warning::new(
                "throttled",
                format!(
                    "CPUs {} were slowed down because they were too hot: later work took longer \
                     than earlier: let the machine cool, and cap its frequency for comparisons",
                    list(hot)
                ),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::cpu_stat::Ticks;

    const MS: u64 = 1_000_000;

    fn cpu(cpu: u32, rt: f64, other: f64) -> Cpu {
        Cpu { cpu, idle: 0.0, irq: 0.0, rt: Some(rt), fair: Some(0.0), other: Some(other) }
    }

    #[test]
    fn noise_is_above_what_ticks_hide() {
        let cpus = [cpu(0, 0.0, 0.02), cpu(1, 0.0, 0.25)];
        let warning = noisy(&cpus, 10 * MS, 2000 * MS).expect("CPU 1 is noisy");
        assert_eq!(warning.code, "noisy");
        assert!(warning.text.contains("25 % of CPUs 1:"), "{}", warning.text);
        assert_eq!(noisy(&cpus[..1], 10 * MS, 2000 * MS), None);
        // two ticks are 40 % of 50 ms
        assert_eq!(noisy(&cpus, 10 * MS, 50 * MS), None);
    }

    #[test]
    fn stolen_time_is_of_all_cpus() {
        let ticks = |steal| Ticks { steal, ..Ticks::default() };
        let stat = |a, b| CpuStat(BTreeMap::from([(0, ticks(a)), (1, ticks(b))]));
        let warning = steal(&stat(10, 0), 10 * MS, 1000 * MS).expect("5 %");
        assert!(warning.code == "steal" && warning.text.contains("5.0 %"), "{}", warning.text);
        assert_eq!(steal(&stat(1, 1), 10 * MS, 1000 * MS), None);
    }

    #[test]
    fn real_time_tasks_are_told_only_at_their_bound() {
        let cpus = [cpu(0, 0.95, 0.05), cpu(1, 0.5, 0.5)];
        let warning = rt_throttled(&cpus, 950_000, 1_000_000).expect("CPU 0 is at 95 %");
        assert_eq!(warning.code, "throttled");
        assert!(warning.text.contains("all of CPUs 0 "), "{}", warning.text);
        assert_eq!(rt_throttled(&cpus[1..], 950_000, 1_000_000), None);
        assert_eq!(rt_throttled(&cpus, -1, 1_000_000), None);
        assert_eq!(rt_throttled(&cpus, 1_000_000, 1_000_000), None);
    }

    #[test]
    fn heat_since_the_start_is_told() {
        let root = tempfile::tempdir().expect("temporary directory");
        let dir = root.path().join("cpu1/thermal_throttle");
        fs::create_dir_all(&dir).expect("directory");
        let read = |count: &str| {
            fs::write(dir.join("core_throttle_count"), count).expect("file");
            Heat::read(root.path(), &[0, 1])
        };
        let (cool, hot) = (read("3\n"), read("5\n"));
        let warning = hot.since(&cool).expect("throttled");
        assert!(warning.code == "throttled" && warning.text.starts_with("CPUs 1 "));
        assert_eq!(hot.since(&hot), None);
    }

    #[test]
    fn only_real_losses_are_told() {
        assert_eq!(lost(0), None);
        assert!(lost(7).expect("told").text.starts_with("7 switches"));
    }
}
