// SPDX-License-Identifier: GPL-2.0-only
//! Figures of how tasks are spread over CPUs, from two readings of the observer.
//!
//! **Occupancy** of a CPU is the mean number of the watched tasks that count as its
//! own: for each task the part of its run time that it spent on this CPU, summed over
//! the tasks. For tasks that only compute and progress equally this is the number of
//! the model (sections 5): n equal tasks share a CPU of free part f when each gets f/n
//! of it, so the CPU's part of all run time is n of N. A task that never leaves a CPU
//! counts 1 there, however little it gets. Time in queues is not in it: who waits in a
//! queue that several CPUs share stands at none of them.

use std::collections::BTreeMap;

use crate::cpus::Cpus;

/// What was counted up to a moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The moment, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Time of each CPU besides that of the watched tasks.
    pub cpus: BTreeMap<u32, CpuTime>,
    /// The watched tasks.
    pub tasks: Vec<TaskTime>,
}

/// Time of one CPU, ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// It was idle.
    pub idle_ns: u64,
    /// In tasks of the real-time classes, or boosted to one.
    pub rt_ns: u64,
    /// In tasks that are not watched.
    pub other_ns: u64,
}

/// One watched task.
#[derive(Clone, Debug, Default)]
pub struct TaskTime {
    /// Run time on each CPU, ns.
    pub run_ns: BTreeMap<u32, u64>,
    /// Times that it came to an RT CPU from an NRT CPU.
    pub moves: u64,
    /// Times that it left an RT CPU inside a call or a fault and went on on an NRT CPU.
    pub evictions: u64,
    /// Those soon after the move.
    pub wasted: u64,
}

impl TaskTime {
    /// Run time on all CPUs, ns.
    #[must_use]
    pub fn total_ns(&self) -> u64 {
        self.run_ns.values().sum()
    }

    /// Run time on these CPUs, ns.
    #[must_use]
    pub fn on_ns(&self, cpus: Cpus) -> u64 {
        cpus.iter().filter_map(|cpu| self.run_ns.get(&cpu)).sum()
    }

    /// The part of its run time that was on these CPUs, 0 to 1.
    #[must_use]
    pub fn part_on(&self, cpus: Cpus) -> f64 {
        ratio(self.on_ns(cpus), self.total_ns())
    }
}

impl Snapshot {
    /// What happened since `before`. `at_ns` is the length.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let cpus = self.cpus.iter().map(|(cpu, c)| {
            let b = before.cpus.get(cpu).copied().unwrap_or_default();
            let d = CpuTime {
                idle_ns: c.idle_ns - b.idle_ns,
                rt_ns: c.rt_ns - b.rt_ns,
                other_ns: c.other_ns - b.other_ns,
            };
            (*cpu, d)
        });
        let none = TaskTime::default();
        let tasks = self.tasks.iter().enumerate().map(|(i, t)| {
            let b = before.tasks.get(i).unwrap_or(&none);
            let run = |(cpu, ns): (&u32, &u64)| (*cpu, ns - b.run_ns.get(cpu).unwrap_or(&0));
            TaskTime {
                run_ns: t.run_ns.iter().map(run).collect(),
                moves: t.moves - b.moves,
                evictions: t.evictions - b.evictions,
                wasted: t.wasted - b.wasted,
            }
        });
        Self { at_ns: self.at_ns - before.at_ns, cpus: cpus.collect(), tasks: tasks.collect() }
    }

    /// Part of the time that real-time tasks took of a CPU, 0 to 1.
    #[must_use]
    pub fn rt_share(&self, cpu: u32) -> f64 {
        self.cpus.get(&cpu).map_or(0.0, |c| ratio(c.rt_ns, self.at_ns))
    }

    /// The part of a CPU that real-time tasks left, 0 to 1.
    #[must_use]
    pub fn free(&self, cpu: u32) -> f64 {
        1.0 - self.rt_share(cpu)
    }

    /// Part of the time that a CPU was idle, 0 to 1.
    #[must_use]
    pub fn idle(&self, cpu: u32) -> f64 {
        self.cpus.get(&cpu).map_or(0.0, |c| ratio(c.idle_ns, self.at_ns))
    }

    /// Part of the time that a CPU ran tasks that are not watched, 0 to 1.
    #[must_use]
    pub fn other(&self, cpu: u32) -> f64 {
        self.cpus.get(&cpu).map_or(0.0, |c| ratio(c.other_ns, self.at_ns))
    }

    /// Mean number of the tasks that count as the CPU's own (see the head of this file).
    #[must_use]
    pub fn occupancy(&self, cpu: u32) -> f64 {
        let part = |t: &TaskTime| ratio(*t.run_ns.get(&cpu).unwrap_or(&0), t.total_ns());
        self.tasks.iter().map(part).sum()
    }

    /// What the model expects as occupancy: all tasks share what real-time tasks left of
    /// all CPUs, so a CPU has as many as its part of that. With real-time share rho on k
    /// CPUs and none on one this is N / (M + k) for each of the k, M = 1 / (1 - rho).
    #[must_use]
    pub fn expected(&self, cpu: u32) -> f64 {
        let all: f64 = self.cpus.keys().map(|c| self.free(*c)).sum();
        as_f64(self.tasks.len() as u64) * self.free(cpu) / all
    }

    /// Run time of each task in CPUs: 1 is a whole one.
    #[must_use]
    pub fn parts(&self) -> Vec<f64> {
        self.tasks.iter().map(|t| ratio(t.total_ns(), self.at_ns)).collect()
    }

    /// Moves to RT CPUs, evictions and wasted moves of all tasks.
    #[must_use]
    pub fn moves(&self) -> (u64, u64, u64) {
        self.tasks
            .iter()
            .fold((0, 0, 0), |(m, e, w), t| (m + t.moves, e + t.evictions, w + t.wasted))
    }

    /// For each CPU: occupancy, what the model expects, shares of
    /// real-time tasks, of tasks that are not watched, and idle.
    #[must_use]
    pub fn table(&self) -> String {
        let row = |c: &u32| {
            format!(
                "CPU {c}: {:.2} of {:.2} tasks, rt {:.1} %, others {:.1} %, idle {:.1} %",
                self.occupancy(*c),
                self.expected(*c),
                self.rt_share(*c) * 100.0,
                self.other(*c) * 100.0,
                self.idle(*c) * 100.0
            )
        };
        self.cpus.keys().map(row).collect::<Vec<_>>().join("; ")
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn as_f64(n: u64) -> f64 {
    n as f64
}

fn ratio(part: u64, whole: u64) -> f64 {
    as_f64(part) / as_f64(whole.max(1))
}

/// Mean, and standard deviation of the whole population over it.
#[must_use]
pub fn mean_cv(values: &[f64]) -> (f64, f64) {
    let n = as_f64(values.len().max(1) as u64);
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt() / mean.max(f64::MIN_POSITIVE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Run times on CPUs 0 to 3 and real-time time on each, of a second.
    fn seen(rt_ns: [u64; 4], tasks: &[[u64; 4]]) -> Snapshot {
        let by_cpu = |t: &[u64; 4]| (0..).zip(t.iter().copied()).collect();
        let task = |t| TaskTime { run_ns: by_cpu(t), ..TaskTime::default() };
        let cpu = |rt_ns| CpuTime { rt_ns, ..CpuTime::default() };
        Snapshot {
            at_ns: 1_000_000_000,
            cpus: (0..).zip(rt_ns.map(cpu)).collect(),
            tasks: tasks.iter().map(task).collect(),
        }
    }

    #[test]
    fn annex_b_expects_ten_to_one() {
        let tasks = [[1, 1, 1, 1]; 13];
        let s = seen([0, 900_000_000, 900_000_000, 900_000_000], &tasks);
        assert!((s.expected(0) - 10.0).abs() < 1e-9, "{}", s.expected(0));
        assert!((s.expected(1) - 1.0).abs() < 1e-9, "{}", s.expected(1));
    }

    #[test]
    fn who_stays_counts_one_and_who_moves_counts_in_parts() {
        let s = seen([0; 4], &[[10, 0, 0, 0], [0, 2, 0, 0], [300, 100, 0, 0]]);
        assert!((s.occupancy(0) - 1.75).abs() < 1e-9, "{}", s.occupancy(0));
        assert!((s.occupancy(1) - 1.25).abs() < 1e-9, "{}", s.occupancy(1));
    }

    #[test]
    fn variation_of_equals_is_none() {
        assert!(mean_cv(&[3.0, 3.0, 3.0]).1 < 1e-9);
        let (mean, cv) = mean_cv(&[1.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-9 && (cv - 0.5).abs() < 1e-9);
    }
}
