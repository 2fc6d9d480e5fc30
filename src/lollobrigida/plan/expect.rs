// SPDX-License-Identifier: GPL-2.0-only
//! What a plan will take, without running it: an estimate of its duration, and the rights
//! it needs.

use super::{Phase, Plan, Rhythm, Task};
use crate::scene::{Cpus, Sched};

/// What is to be expected of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// An estimate of the makespan: the longest of what the slowest task takes alone and
    /// what the computing takes when all CPUs it may use share it evenly. Contention,
    /// system calls and memory are not in it, so a real run takes longer. In µs.
    pub duration_us: f64,
    /// All computing, on one CPU. In µs.
    pub cpu_us: f64,
    /// `duration_us` is the scene's limit: without it the run would be longer.
    pub limited: bool,
    /// What the runner must be allowed to do, by group.
    pub needs: Vec<Need>,
}

/// A right that a group needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Name of the group.
    pub group: String,
    /// The right.
    pub right: Right,
    /// What for, and what else would do.
    pub why: String,
}

/// Rights that a plan may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Right {
    /// CAP_SYS_NICE.
    SysNice,
    /// Writing to a cgroup (v2) with the cpu controller.
    CgroupWrite,
    /// A kernel with sched_ext (6.12).
    SchedExt,
}

/// What one task does if nobody is in its way.
#[derive(Clone, Copy, Debug, Default)]
struct Alone {
    end_us: f64,
    cpu_us: f64,
    /// Items it posts to each of its consumers.
    items: f64,
}

/// Looks a plan over for a machine with so many CPUs.
#[must_use]
pub fn expect(plan: &Plan, ncpus: u32) -> Expectation {
    let mut alone: Vec<Option<Alone>> = vec![None; plan.tasks.len()];
    for i in 0..plan.tasks.len() {
        task_alone(plan, i, &mut alone);
    }
    let alone: Vec<Alone> = alone.into_iter().map(Option::unwrap_or_default).collect();
    let cpu_us: f64 = alone.iter().map(|a| a.cpu_us).sum();
    let longest_us = alone.iter().map(|a| a.end_us).fold(0.0, f64::max);
    let shared_us = crowded(plan, &alone).fold(cpu_us / f64::from(ncpus.max(1)), f64::max);
    let duration_us = longest_us.max(shared_us);
    let limit_us = plan.limit_us.map_or(f64::INFINITY, |us| us as f64);
    Expectation {
        duration_us: duration_us.min(limit_us),
        cpu_us,
        limited: duration_us >= limit_us,
        needs: needs(plan),
    }
}

/// For each set of CPUs that tasks are bound to: their computing, shared evenly by it.
fn crowded<'a>(plan: &'a Plan, alone: &'a [Alone]) -> impl Iterator<Item = f64> + 'a {
    let mut sets: Vec<&Cpus> = plan.tasks.iter().filter_map(|t| t.cpus.as_ref()).collect();
    sets.sort();
    sets.dedup();
    sets.into_iter().map(move |set| {
        let bound = |task: &Task| task.cpus.as_ref().is_some_and(|c| c.0.is_subset(&set.0));
        let cpu_us: f64 =
            plan.tasks.iter().zip(alone).filter(|(t, _)| bound(t)).map(|(_, a)| a.cpu_us).sum();
        cpu_us / set.0.len().max(1) as f64
    })
}

/// Producers first: links make no circles in a plan that was built.
fn task_alone(plan: &Plan, i: usize, known: &mut [Option<Alone>]) -> Alone {
    if let Some(alone) = known[i] {
        return alone;
    }
    let task = &plan.tasks[i];
    let (mut rounds, mut made_us) = (f64::INFINITY, 0.0_f64);
    for link in &task.takes {
        let producer = task_alone(plan, plan.links[*link].from, known);
        rounds = rounds.min(producer.items);
        made_us = made_us.max(producer.end_us);
    }
    let limit_us = plan.limit_us.map_or(f64::INFINITY, |us| us as f64);
    let mut alone = Alone { end_us: task.start_us as f64, ..Alone::default() };
    for phase in &task.phases {
        let left_us = (limit_us - alone.end_us).max(0.0);
        let wait_us = (made_us - alone.end_us).max(0.0);
        let part = phase_alone(phase, plan.scale.steps_per_us, left_us, rounds, wait_us);
        if matches!(phase.rhythm, Rhythm::Items { .. }) {
            rounds = (rounds - part.items).max(0.0);
        }
        alone.end_us += part.end_us;
        alone.cpu_us += part.cpu_us;
        alone.items += part.items;
    }
    known[i] = Some(alone);
    alone
}

/// A phase as so many turns, each of computing and a pause, bounded by work and by time.
fn phase_alone(phase: &Phase, steps_per_us: f64, left_us: f64, rounds: f64, wait_us: f64) -> Alone {
    let us = |steps: u64| match steps {
        u64::MAX => f64::INFINITY,
        steps => steps as f64 / steps_per_us,
    };
    let work_us = us(phase.work_steps);
    let (burst_us, turn_us) = match phase.rhythm {
        Rhythm::Steady => (work_us, work_us),
        Rhythm::Sleep { every_steps, sleep_us } => {
            (us(every_steps), us(every_steps) + sleep_us as f64)
        }
        Rhythm::Periodic { period_us, burst_steps, .. } => {
            (us(burst_steps), us(burst_steps).max(period_us as f64))
        }
        Rhythm::Items { burst_steps } => (us(burst_steps), us(burst_steps)),
    };
    let by_items = matches!(phase.rhythm, Rhythm::Items { .. });
    let turns = match burst_us.is_finite() {
        true => (work_us / burst_us).ceil().min(if by_items { rounds } else { f64::INFINITY }),
        false => 1.0,
    };
    let most_us = phase.duration_us.map_or(left_us, |us| left_us.min(us as f64));
    // the last turn has no pause
    let whole_us = if turns.is_finite() {
        turns * turn_us - (turn_us - burst_us).max(0.0)
    } else {
        f64::INFINITY
    };
    let end_us = whole_us.max(if by_items { wait_us } else { 0.0 }).min(most_us);
    if whole_us <= end_us {
        return Alone { end_us, cpu_us: work_us.min(turns * burst_us), items: turns };
    }
    match turn_us.is_finite() {
        true => {
            Alone { end_us, cpu_us: end_us * burst_us / turn_us, items: (end_us / turn_us).floor() }
        }
        false => Alone { end_us, cpu_us: end_us, items: 0.0 },
    }
}

fn needs(plan: &Plan) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    for task in plan.tasks.iter().filter(|task| task.nth == 0) {
        let mut need = |right, why: String| {
            needs.push(Need { group: plan.groups[task.group].clone(), right, why });
        };
        match task.sched {
            Sched::Fifo { priority } | Sched::Rr { priority } => need(
                Right::SysNice,
                format!("for real-time priority {priority}; RLIMIT_RTPRIO of {priority} would do"),
            ),
            Sched::Deadline { .. } => need(Right::SysNice, deadline(task)),
            Sched::Normal { nice } | Sched::Batch { nice } | Sched::Ext { nice } if nice < 0 => {
                need(
                    Right::SysNice,
                    format!("for nice {nice}; RLIMIT_NICE of {} would do", 20 - nice),
                );
            }
            _ => {}
        }
        if let Sched::Ext { .. } = task.sched {
            need(Right::SchedExt, "for SCHED_EXT; a kernel without it refuses the policy".into());
        }
        if let Some(cgroup) = &task.cgroup {
            need(Right::CgroupWrite, format!("for cgroup {} below the run's own", cgroup.path));
        }
    }
    needs
}

fn deadline(task: &Task) -> String {
    let mut why = "for SCHED_DEADLINE".to_owned();
    if let Some(cpus) = &task.cpus {
        why += &format!(
            "; bound to CPUs {cpus}, which the kernel refuses outside a cpuset of its own"
        );
    }
    why
}
