// SPDX-License-Identifier: GPL-2.0-only
//! Names for the groups of a format that has none.

use std::collections::HashMap;

use super::{Group, Sched};

/// Longest list of CPUs that a name takes in.
const LONGEST_LIST: usize = 12;

/// Names the groups by policy and CPUs, as `normal` and `fifo99-cpu1`; of those that would
/// have one name, the second gets `-2`.
pub(super) fn give(groups: &mut [Group]) {
    let mut used: HashMap<String, u32> = HashMap::new();
    for group in groups {
        let name = policy(group.sched) + &cpus(group);
        let times = used.entry(name.clone()).or_default();
        *times += 1;
        group.name = if *times == 1 { name } else { format!("{name}-{times}") };
    }
}

fn policy(sched: Sched) -> String {
    let nice = |name: &str, nice: i32| match nice {
        0 => name.to_owned(),
        nice => format!("{name}{nice:+}"),
    };
    match sched {
        Sched::Normal { nice: n } => nice("normal", n),
        Sched::Batch { nice: n } => nice("batch", n),
        Sched::Ext { nice: n } => nice("ext", n),
        Sched::Idle => "idle".into(),
        Sched::Fifo { priority } => format!("fifo{priority}"),
        Sched::Rr { priority } => format!("rr{priority}"),
        Sched::Deadline { .. } => "deadline".into(),
    }
}

/// Empty for masks that let the task run on all CPUs from 0 up: they mean "everywhere".
fn cpus(group: &Group) -> String {
    let Some(cpus) = &group.cpus else { return String::new() };
    let list = cpus.to_string();
    match cpus.0.len() {
        1 => format!("-cpu{list}"),
        _ if list.starts_with("0-") && !list.contains(',') => String::new(),
        _ if list.len() > LONGEST_LIST => "-cpus".into(),
        _ => format!("-cpus{}", list.replace(',', "_")),
    }
}
