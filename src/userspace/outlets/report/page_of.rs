// SPDX-License-Identifier: GPL-2.0-only
//! The page of a recording.

use ::page::chart::{Grid, NOTHING, Section};
use ::page::palette;
use anyhow::Result;
use askama::Template;
use time::OffsetDateTime;
use time::macros::format_description;

use super::chart;
use super::gather::{Known, NOTES, Recorded, WOKEN};
use crate::model::{Described, TaskMetrics};
use crate::outlets::words::{count, digits, ns, number, pct, policy, us};

/// Figures of a task that the page shows and explains.
const SHOWN: &[&str] = &["class", "attempts", "evictions", "moves_rt", "hits", "misses", "waits"];

/// The page of `recorded`, which was read from `file`.
///
/// # Errors
/// When the drawing library fails.
pub fn page(recorded: &Recorded, file: &str) -> Result<String> {
    let begin = &recorded.begin;
    let page = Page {
        file,
        when: when(recorded.from_unix_ms),
        facts: facts(recorded),
        warnings: warnings(recorded),
        notes: &recorded.notes,
        sections: sections(recorded)?,
        tasks: tasks(recorded),
        policy: begin.policy.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        glossary: TaskMetrics::FIELDS
            .iter()
            .filter(|field| SHOWN.contains(&field.name))
            .map(|field| (field.title, field.desc))
            .collect(),
        dark: palette::dark_rules(),
        version: env!("CARGO_PKG_VERSION"),
    };
    Ok(page.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    file: &'a str,
    when: String,
    facts: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    notes: &'a [(f64, String)],
    sections: Vec<Section>,
    tasks: Grid,
    policy: Vec<(&'a str, &'a str)>,
    glossary: Vec<(&'static str, &'static str)>,
    dark: String,
    version: &'static str,
}

fn when(unix_ms: u64) -> String {
    let secs = i64::try_from(unix_ms / 1_000).unwrap_or(0);
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    let at = OffsetDateTime::from_unix_timestamp(secs).ok();
    at.and_then(|at| at.format(format).ok()).unwrap_or_default()
}

fn facts(recorded: &Recorded) -> Vec<(&'static str, String)> {
    let (begin, machine) = (&recorded.begin, &recorded.machine);
    let len_s = recorded.len_s();
    let evictions: f64 = recorded.spans.iter().map(|span| span.evictions).sum();
    vec![
        ("RT CPUs", begin.rt_cpus.clone()),
        ("NRT CPUs", begin.nrt_cpus.clone()),
        ("Recorded for", format!("{}, {}", ns(len_s * 1e9), count(recorded.intervals, "interval"))),
        ("Program", format!("scx_artis {}", begin.program)),
        ("Kernel", format!("{} {}", begin.kernel, begin.arch)),
        ("Preemption", begin.preemption.clone()),
        ("Tasks seen", number(recorded.tasks.len() as u64)),
        (
            "Evictions",
            format!(
                "{}, {}/s",
                number(evictions.round() as u64),
                digits(evictions / len_s.max(1e-9))
            ),
        ),
        ("Endangering bodies on RT CPUs", number(machine.bodies_on_rt)),
        ("Longest kernel section on an RT CPU", us(machine.residence_max_us)),
        ("Moves to RT CPUs that were wasted", pct(machine.wasted_pct)),
    ]
}

/// What has to be known before the figures are believed.
fn warnings(recorded: &Recorded) -> Vec<String> {
    let lost = &recorded.lost;
    let mut warnings = Vec::new();
    if recorded.machine.bodies_on_rt > 0 {
        warnings.push(format!(
            "{} ran on RT CPUs although the task could leave, since the scheduler began: that must \
             not be. The latest: {}.",
            count(recorded.machine.bodies_on_rt, "endangering section"),
            recorded.machine.body_causes()
        ));
    }
    for (n, thing, what) in [
        (
            lost.ring,
            "record",
            "found no room in the ring buffer: figures of some tasks are old or missing",
        ),
        (
            lost.over_budget,
            "record",
            "were over the budget of their CPU: events are missing (record-budget)",
        ),
        (
            lost.feed,
            "record",
            "did not reach the recorder: figures of some tasks are old or missing",
        ),
        (
            recorded.events_left_out,
            "event",
            "were more than one interval can hold, and are left out",
        ),
        (
            recorded.notes_left_out,
            "note",
            &format!(
                "at the end of the recording are left out: this page has the first {}",
                number(NOTES as u64)
            ),
        ),
        (
            recorded.woken_left_out,
            "point",
            &format!(
                "of wake-up latency over time are left out: an interval has those of the {WOKEN} tasks with the longest"
            ),
        ),
    ] {
        if n > 0 {
            warnings.push(format!("{} {what}.", count(n, thing)));
        }
    }
    warnings
}

fn sections(recorded: &Recorded) -> Result<Vec<Section>> {
    let all = [
        Section {
            title: "Hard real-time tasks",
            text: "The promise: an RT CPU answers as if it were isolated. The worst case is what \
                   counts.",
            charts: chart::latency::chart(recorded)?.into_iter().collect(),
        },
        Section {
            title: "The CPUs",
            text: "And still it computes for everyone: what ext tasks have of RT CPUs would be \
                   lost to isolation.",
            charts: chart::shares::chart(recorded)?.into_iter().collect(),
        },
        Section {
            title: "Evictions",
            text: "Each is a task that computed on an RT CPU and was moved before it did kernel \
                   work there. Few is good: much calm computing, few kernel entries.",
            charts: [
                chart::evictions::chart(recorded)?,
                chart::residence::arrival(recorded)?,
                chart::residence::residence(recorded)?,
            ]
            .into_iter()
            .flatten()
            .collect(),
        },
    ];
    Ok(all.into_iter().filter(|section| !section.charts.is_empty()).collect())
}

/// The tasks, the busiest first.
fn tasks(recorded: &Recorded) -> Grid {
    let mut all: Vec<&Known> = recorded.tasks.values().collect();
    all.sort_by(|a, b| b.run_s.total_cmp(&a.run_s));
    // columns that have nothing to say in any row are left out
    let some = |n: u64| if n > 0 { number(n) } else { NOTHING.into() };
    let row = |known: &&Known| {
        let (task, metrics) = (&known.task, &known.task.metrics);
        let causes: Vec<String> = task
            .causes
            .iter()
            .take(3)
            .map(|cause| format!("{} {}", cause.cause, number(cause.attempts)))
            .collect();
        let quantile = |share| match metrics.waits {
            0 => NOTHING.into(),
            _ => us((task.waits.quantile_ns(share) / 1e3).min(metrics.wait_max_us)),
        };
        let ended = if known.ended { ", ended" } else { "" };
        vec![
            format!("{}/{}{ended}", metrics.comm, metrics.pid),
            metrics.class.clone(),
            policy(metrics),
            ns(known.run_s * 1e9),
            ns(known.on_rt_s * 1e9),
            some(metrics.attempts),
            some(metrics.evictions),
            causes.join(", "),
            some(metrics.moves_rt),
            match metrics.hits + metrics.misses {
                0 => NOTHING.into(),
                judged => pct(metrics.hits as f64 * 100.0 / judged as f64),
            },
            quantile(0.5),
            quantile(0.99),
            if metrics.waits > 0 { us(metrics.wait_max_us) } else { NOTHING.into() },
        ]
    };
    let head = [
        "task",
        "class",
        "policy",
        "CPU time",
        "on RT CPUs",
        "attempts",
        "evictions",
        "top causes of attempts",
        "moves to RT",
        "of these worth it",
        "wait, median",
        "99 %",
        "longest",
    ];
    Grid::new(&head, all.iter().map(row).collect())
}
