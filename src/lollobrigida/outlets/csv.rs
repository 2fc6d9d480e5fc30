// SPDX-License-Identifier: GPL-2.0-only
//! CSV in long form: one row for each task of each run, units in the header's names. An
//! empty field: not known. Columns:
//!
//! | column | what |
//! |---|---|
//! | `scene`, `scheduler` | names |
//! | `run` | number of the run under this scheduler, from 0 |
//! | `group`, `task` | the group's name, the task's number in it |
//! | `cut` | why the task did not finish; empty: it did |
//! | `begun_ns`, `wall_ns` | from the start signal to its begin, from there to its end |
//! | `cpu_ns`, `wait_ns` | on a CPU; runnable but not on a CPU |
//! | `steps` | steps of the computing kernel |
//! | `voluntary_switches`, `involuntary_switches`, `migrations`, `evictions` | times |
//! | `calls_seen`, `calls_made` | system calls by the kernel's count and by the task's own |
//! | `wakeup_count`, `wakeup_mean_ns` ... `wakeup_max_ns` | wake-up latency |
//! | `periods`, `misses` | periods begun, and those whose burst was late or left out |
//! | `item_age_count`, `item_age_mean_ns` ... `item_age_max_ns` | age of the items used |
//! | `cpu0_ns`, `cpu1_ns`, ... | time on each CPU; one column for each CPU of any run |

use std::collections::BTreeSet;

use csv::Writer;

use crate::result::comparison::Comparison;
use crate::result::{Latency, Run, Task};

const TASK: [&str; 19] = [
    "scene",
    "scheduler",
    "run",
    "group",
    "task",
    "cut",
    "begun_ns",
    "wall_ns",
    "cpu_ns",
    "wait_ns",
    "steps",
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "evictions",
    "calls_seen",
    "calls_made",
    "periods",
    "misses",
];
const LATENCY: [&str; 8] =
    ["count", "mean_ns", "stdev_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"];

/// The tasks of one run.
///
/// # Errors
/// When writing fails.
pub fn run(run: &Run) -> csv::Result<String> {
    write(&[(&run.scheduler.name, std::slice::from_ref(run))])
}

/// The tasks of all runs.
///
/// # Errors
/// When writing fails.
pub fn comparison(comparison: &Comparison) -> csv::Result<String> {
    let runs = comparison.runs.iter().map(Vec::as_slice);
    write(&comparison.unders.iter().map(String::as_str).zip(runs).collect::<Vec<_>>())
}

/// By scheduler.
fn write(all: &[(&str, &[Run])]) -> csv::Result<String> {
    let runs = || all.iter().flat_map(|(_, runs)| runs.iter());
    let cpus: BTreeSet<u32> = runs()
        .flat_map(|run| {
            let ran = run.tasks.iter().flat_map(|t| t.cpu_time_ns.iter().flat_map(|on| on.keys()));
            run.cpus.iter().map(|c| c.cpu).chain(ran.copied())
        })
        .collect();
    let mut out = Writer::from_writer(Vec::new());
    out.write_record(header(&cpus))?;
    for (scheduler, runs) in all {
        for (nth, run) in runs.iter().enumerate() {
            for task in &run.tasks {
                out.write_record(row(scheduler, nth, run, task, &cpus))?;
            }
        }
    }
    let bytes = out.into_inner().map_err(|e| csv::Error::from(e.into_error()))?;
    // Names are UTF-8 and all else is written here.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn header(cpus: &BTreeSet<u32>) -> Vec<String> {
    let latency = |of: &str| LATENCY.map(|part| format!("{of}_{part}"));
    let mut all: Vec<String> = TASK.map(Into::into).into();
    all.extend(latency("wakeup"));
    all.extend(latency("item_age"));
    all.extend(cpus.iter().map(|cpu| format!("cpu{cpu}_ns")));
    all
}

fn row(scheduler: &str, nth: usize, run: &Run, t: &Task, cpus: &BTreeSet<u32>) -> Vec<String> {
    let known = |value: Option<u64>| value.map_or(String::new(), |v| v.to_string());
    let evictions = t.evictions.as_ref().map(|causes| causes.values().sum());
    let mut all = vec![
        run.scene.clone(),
        scheduler.into(),
        nth.to_string(),
        run.groups.get(t.group).map_or(String::new(), |g| g.name.clone()),
        t.nth.to_string(),
        t.cut.clone().unwrap_or_default(),
        t.begun_ns.to_string(),
        t.wall_ns.to_string(),
        t.cpu_ns.to_string(),
        known(t.wait_ns),
        t.steps.to_string(),
        t.voluntary_switches.to_string(),
        t.involuntary_switches.to_string(),
        known(t.migrations),
        known(evictions),
        known(t.calls_seen),
        t.calls_made.to_string(),
        t.periods.to_string(),
        t.misses.to_string(),
    ];
    all.extend(latency(t.wakeup));
    all.extend(latency(t.item_age));
    // A CPU where the task did not run is 0, unless nothing is known of any.
    let on = |cpu| t.cpu_time_ns.as_ref().map(|on| on.get(cpu).copied().unwrap_or(0));
    all.extend(cpus.iter().map(|cpu| known(on(cpu))));
    all
}

fn latency(of: Option<Latency>) -> [String; LATENCY.len()] {
    of.map_or_else(Default::default, |l| {
        [
            l.count.to_string(),
            l.mean_ns.to_string(),
            l.stdev_ns.to_string(),
            l.min_ns.to_string(),
            l.p50_ns.to_string(),
            l.p90_ns.to_string(),
            l.p99_ns.to_string(),
            l.max_ns.to_string(),
        ]
    })
}
