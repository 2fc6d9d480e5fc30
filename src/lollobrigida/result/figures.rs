// SPDX-License-Identifier: GPL-2.0-only
//! The figures by which runs are compared: what each means, its unit, which way is good,
//! and how it is had from a run.

use serde::{Deserialize, Serialize};

use super::{Group, Latency, Run, Task};

/// Of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microjoules.
    Uj,
    /// 0 to 1.
    Share,
    /// Jain's index: 1/n to 1.
    Index,
    /// How many.
    Count,
    /// Steps of the computing kernel in a microsecond.
    StepsPerUs,
}

/// Which way is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The less the better.
    Less,
    /// The more the better.
    More,
    /// It tells how a scheduler works, not how well.
    Neither,
}

/// One figure.
pub(super) struct Kind {
    pub name: &'static str,
    pub title: &'static str,
    pub meaning: &'static str,
    pub unit: Unit,
    pub better: Better,
    of: Of,
}

enum Of {
    Run(fn(&Run) -> Option<f64>),
    /// The group with its index.
    Group(fn(&Run, usize, &Group) -> Option<f64>),
}

/// A figure's values by scheduler and run.
pub(super) type Values = Vec<Vec<Option<f64>>>;

/// Every figure that any run has, whole runs first, then by group, with its values by
/// scheduler and run. Groups are found by name, in the first run's order.
pub(super) fn all(runs: &[Vec<Run>]) -> Vec<(&'static Kind, Option<String>, Values)> {
    let groups: Vec<&str> = runs
        .iter()
        .flatten()
        .next()
        .into_iter()
        .flat_map(|r| &r.groups)
        .map(|g| &*g.name)
        .collect();
    let whole = KINDS.iter().filter(|k| matches!(k.of, Of::Run(_))).map(|k| (k, None));
    let by_group = groups.iter().flat_map(|group| {
        KINDS
            .iter()
            .filter(|k| matches!(k.of, Of::Group(_)))
            .map(|k| (k, Some((*group).to_owned())))
    });
    whole
        .chain(by_group)
        .map(|(kind, group)| {
            let values: Values = runs
                .iter()
                .map(|runs| runs.iter().map(|run| kind.value(run, group.as_deref())).collect())
                .collect();
            (kind, group, values)
        })
        .filter(|(_, _, values)| values.iter().flatten().any(Option::is_some))
        .collect()
}

impl Kind {
    fn value(&self, run: &Run, group: Option<&str>) -> Option<f64> {
        let value = match self.of {
            Of::Run(of) => of(run),
            Of::Group(of) => {
                let index = run.groups.iter().position(|g| Some(&*g.name) == group)?;
                of(run, index, &run.groups[index])
            }
        };
        // JSON has no NaN: a figure that is not a number is not there.
        value.filter(|v| v.is_finite())
    }
}

const KINDS: &[Kind] = &[
    Kind {
        name: "makespan",
        title: "makespan",
        meaning: "From the start signal to the end of the last task.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Run(|run| Some(run.makespan_ns as f64)),
    },
    Kind {
        name: "idle",
        title: "idle share",
        meaning: "Share of the makespan in which a CPU was idle, mean of the CPUs: the rest that \
                  the scene left unused (efficiency).",
        unit: Unit::Share,
        better: Better::Less,
        of: Of::Run(|run| mean(run.cpus.iter().map(|c| c.idle))),
    },
    Kind {
        name: "migrations",
        title: "migrations",
        meaning: "Times that a task moved to another CPU, all tasks together.",
        unit: Unit::Count,
        better: Better::Less,
        of: Of::Run(|run| run.tasks.iter().map(|t| t.migrations.map(|n| n as f64)).sum()),
    },
    Kind {
        name: "evictions",
        title: "evictions",
        meaning: "Times that scx_artis moved a task off an RT CPU, all tasks and causes together.",
        unit: Unit::Count,
        better: Better::Neither,
        of: Of::Run(|run| {
            let known = || run.tasks.iter().filter_map(|t| t.evictions.as_ref());
            known().next()?;
            Some(known().flat_map(|causes| causes.values()).sum::<u64>() as f64)
        }),
    },
    Kind {
        name: "energy",
        title: "energy",
        meaning: "Energy of the whole package from start to end, others' work included.",
        unit: Unit::Uj,
        better: Better::Less,
        of: Of::Run(|run| run.energy_uj.map(|uj| uj as f64)),
    },
    Kind {
        name: "wall_mean",
        title: "time, mean",
        meaning: "Execution time of the group's tasks, each from its begin to its end: mean.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| finished(g).map(|g| g.wall.mean_ns)),
    },
    Kind {
        name: "wall_stdev",
        title: "time, stdev",
        meaning: "Standard deviation of the execution time over the group's equal tasks (equity).",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| finished(g).filter(|g| g.finished > 1).map(|g| g.wall.stdev_ns)),
    },
    Kind {
        name: "jain",
        title: "fairness",
        meaning: "Jain's index of the tasks' speeds: 1 when all are equally fast, 1/n when one of \
                  n tasks has everything.",
        unit: Unit::Index,
        better: Better::More,
        of: Of::Group(|_, _, g| finished(g).filter(|g| g.finished > 1).map(|g| g.jain)),
    },
    Kind {
        name: "speed",
        title: "speed",
        meaning: "Steps of computing done in a microsecond of execution time, mean of the group's \
                  finished tasks.",
        unit: Unit::StepsPerUs,
        better: Better::More,
        of: Of::Group(|run, index, _| speed(run, index)),
    },
    Kind {
        name: "cpu_mean",
        title: "CPU time",
        meaning: "Time on a CPU, mean of the group's tasks. More for the same work: cold caches, \
                  a lower frequency, more system time.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| finished(g).map(|g| g.cpu.mean_ns)),
    },
    Kind {
        name: "wakeup_p50",
        title: "wake-up p50",
        meaning: "From the moment a sleep should have ended to the task's own next instruction: \
                  half of the wake-ups are not later.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.wakeup, |l| l.p50_ns as f64)),
    },
    Kind {
        name: "wakeup_p99",
        title: "wake-up p99",
        meaning: "99 % of the wake-ups are not later.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.wakeup, |l| l.p99_ns as f64)),
    },
    Kind {
        name: "wakeup_max",
        title: "wake-up max",
        meaning: "The latest wake-up.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.wakeup, |l| l.max_ns as f64)),
    },
    Kind {
        name: "misses",
        title: "misses",
        meaning: "Share of the periods whose burst was late or left out.",
        unit: Unit::Share,
        better: Better::Less,
        of: Of::Group(|_, _, g| (g.periods > 0).then(|| g.misses as f64 / g.periods as f64)),
    },
    Kind {
        name: "item_age_mean",
        title: "item age, mean",
        meaning: "From the making of the oldest item to the end of the burst that used it: mean.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.item_age, |l| l.mean_ns)),
    },
    Kind {
        name: "item_age_stdev",
        title: "item age, stdev",
        meaning: "Standard deviation of the items' age: the jitter of the pipeline.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.item_age, |l| l.stdev_ns)),
    },
    Kind {
        name: "item_age_p99",
        title: "item age, p99",
        meaning: "99 % of the items are not older.",
        unit: Unit::Ns,
        better: Better::Less,
        of: Of::Group(|_, _, g| of(g.item_age, |l| l.p99_ns as f64)),
    },
];

/// The summaries of a group in which no task finished are zeros that mean nothing.
fn finished(group: &Group) -> Option<&Group> {
    (group.finished > 0).then_some(group)
}

fn of(latency: Option<Latency>, value: fn(Latency) -> f64) -> Option<f64> {
    latency.filter(|l| l.count > 0).map(value)
}

fn speed(run: &Run, group: usize) -> Option<f64> {
    let of_group = |t: &&Task| t.group == group && t.cut.is_none() && t.wall_ns > 0;
    mean(run.tasks.iter().filter(of_group).map(|t| t.steps as f64 * 1e3 / t.wall_ns as f64))
}

/// `None` without values.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
