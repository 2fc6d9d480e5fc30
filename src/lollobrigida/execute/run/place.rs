// SPDX-License-Identifier: GPL-2.0-only
//! Each task gets its cgroup, its CPUs and its policy, in this order: a DEADLINE task's
//! CPUs cannot be changed any more, nor a real-time task's cgroup on some kernels.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

use super::cgroup::Cgroups;
use super::policy;
use crate::measure::notes::Notes;
use crate::plan::Plan;
use crate::scene::Cpus;

/// Places all tasks, which sleep; what is refused goes to `notes`. Tells for each task
/// whether it is a real-time task now.
#[must_use]
pub fn place(plan: &Plan, pids: &[Pid], cgroups: Option<&Cgroups>, notes: &mut Notes) -> Vec<bool> {
    let one = |(task, &pid): (&crate::plan::Task, &Pid)| {
        let group = &plan.groups[task.group];
        if let Some(Err(why)) = cgroups.map(|cgroups| cgroups.enter(task, pid)) {
            notes.missing("cgroup", format!("group `{group}`: {why}"));
        }
        if let Some(cpus) = &task.cpus
            && let Err(why) = pin(pid, cpus)
        {
            notes.missing("cpus", format!("group `{group}`: {why}"));
        }
        let set = policy::set(pid, &task.sched);
        if let Err(err) = &set {
            notes.missing("sched", policy::why(group, &task.sched, err));
        }
        set.is_ok() && policy::is_rt(&task.sched)
    };
    plan.tasks.iter().zip(pids).map(one).collect()
}

fn pin(pid: Pid, cpus: &Cpus) -> Result<(), String> {
    let mut set = CpuSet::new();
    for &cpu in &cpus.0 {
        set.set(cpu as usize)
            .map_err(|_| format!("CPU {cpu} is beyond what sched_setaffinity(2) is asked for"))?;
    }
    sched_setaffinity(pid, &set).map_err(|err| {
        format!(
            "its tasks cannot be bound to CPUs {cpus} ({err}) and run everywhere: they must be \
             online and in the runner's cpuset (/proc/self/status, Cpus_allowed_list)"
        )
    })
}
