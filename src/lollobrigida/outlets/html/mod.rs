// SPDX-License-Identifier: GPL-2.0-only
//! `report.html`: one page that needs nothing else, for the screen (bright, dark, narrow) and
//! for paper. No script.

mod chart;
mod grids;
mod side;

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use askama::Template;
use page::chart::Section;
use page::palette;

use self::chart::{Chart, Grid};
use self::side::{Keys, Side};
use super::units;
use crate::result::comparison::Comparison;
use crate::result::figures::Unit;
use crate::result::{Missing, Run, Warning};

/// The page of one run.
///
/// # Errors
/// When the drawing library fails.
pub fn run(run: &Run) -> Result<String> {
    let Some(side) = Side::new(&run.scheduler.name, std::slice::from_ref(run)) else {
        bail!("a run is a list of one run");
    };
    Ok(Page::of(&[side], None, &run.warnings, &run.missing)?.render()?)
}

/// The page of a comparison. Schedulers without a run are left out of the charts.
///
/// # Errors
/// When there is no run at all, or the drawing library fails.
pub fn comparison(comparison: &Comparison) -> Result<String> {
    let titles = comparison.unders.iter().zip(&comparison.runs);
    let sides: Vec<Side> = titles.filter_map(|(title, runs)| Side::new(title, runs)).collect();
    if sides.is_empty() {
        bail!("there is no run to make a report of: each run failed, see the messages above");
    }
    let (warnings, missing) = (&comparison.warnings, &comparison.missing);
    Ok(Page::of(&sides, Some(comparison), warnings, missing)?.render()?)
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    scene: &'a str,
    why: &'a str,
    good: &'a str,
    schedulers: String,
    facts: Vec<(&'static str, String)>,
    warnings: &'a [Warning],
    missing: &'a [Missing],
    sources: BTreeSet<(&'a str, &'a str)>,
    ratios: Vec<grids::Ratios>,
    unders: &'a [String],
    sections: Vec<Section>,
    groups: Vec<(String, Grid)>,
    tasks: Vec<(String, Grid)>,
    glossary: Vec<(&'static str, &'static str)>,
    dark: String,
    version: &'static str,
}

impl<'a> Page<'a> {
    fn of(
        sides: &[Side<'a>],
        comparison: Option<&'a Comparison>,
        warnings: &'a [Warning],
        missing: &'a [Missing],
    ) -> Result<Self> {
        let first = sides[0].shown;
        let titles: Vec<&str> = sides.iter().map(|s| s.title).collect();
        let of_each = |of: fn(&Run) -> Grid| -> Vec<(String, Grid)> {
            sides.iter().map(|s| (s.title.to_owned(), of(s.shown))).collect()
        };
        Ok(Self {
            scene: &first.scene,
            why: &first.why,
            good: &first.good,
            schedulers: titles.join(", "),
            facts: facts(sides),
            warnings,
            missing,
            sources: sides.iter().flat_map(|s| s.runs).flat_map(sources).collect(),
            ratios: comparison.map(grids::ratios).unwrap_or_default(),
            unders: comparison.map_or(&[], |c| &c.unders),
            sections: sections(sides)?,
            groups: of_each(grids::groups),
            tasks: of_each(grids::tasks),
            glossary: grids::GLOSSARY.to_vec(),
            dark: palette::dark_rules(),
            version: env!("CARGO_PKG_VERSION"),
        })
    }
}

fn sources(run: &Run) -> impl Iterator<Item = (&str, &str)> {
    run.sources.iter().map(|(what, how)| (&**what, &**how))
}

fn facts(sides: &[Side]) -> Vec<(&'static str, String)> {
    let run = sides[0].shown;
    let m = &run.machine;
    let makespans: Vec<String> = sides
        .iter()
        .map(|s| {
            let cut = if s.shown.cut { ", cut" } else { "" };
            let of = if sides.len() > 1 { format!(" ({})", s.title) } else { String::new() };
            format!("{}{cut}{of}", units::ns(s.shown.makespan_ns))
        })
        .collect();
    let ops = |s: &Side| s.shown.scheduler.ops.clone().unwrap_or_else(|| "the kernel's own".into());
    let scale = &run.scale;
    let mut facts = vec![
        ("In charge", sides.iter().map(ops).collect::<Vec<_>>().join(", ")),
        ("Makespan", makespans.join("; ")),
        ("Runs", sides.iter().map(|s| s.runs.len().to_string()).collect::<Vec<_>>().join(", ")),
        ("Tasks", format!("{} in {} groups", run.tasks.len(), run.groups.len())),
        ("Machine", format!("{}, {} CPUs", m.cpu, m.cpus)),
        ("Kernel", format!("{} {}", m.kernel, m.version)),
        (
            "Calibration",
            format!(
                "{:.1} steps in 1 µs, {:.0} steps in an iteration, work × {}",
                scale.steps_per_us, scale.steps_per_loop, scale.work
            ),
        ),
    ];
    if let (Some(uj), [_]) = (run.energy_uj, sides) {
        facts.push(("Energy", units::text(uj as f64, Unit::Uj)));
    }
    facts
}

fn sections(sides: &[Side]) -> Result<Vec<Section>> {
    let keys = Keys::of(sides[0].shown);
    let until_ns = sides.iter().map(|s| s.shown.makespan_ns).max().unwrap_or(0);
    let each = |of: &dyn Fn(usize, Side) -> Result<Option<Chart>>| -> Result<Vec<Chart>> {
        let charts: Result<Vec<Option<Chart>>> =
            sides.iter().enumerate().map(|(i, s)| of(i, *s)).collect();
        Ok(charts?.into_iter().flatten().collect())
    };
    let all = [
        Section {
            title: "Who ran where",
            text: "A lane for each CPU; blank where none of the scene's tasks ran. Of several runs \
                   the one of the median makespan is drawn.",
            charts: each(&|i, s| {
                chart::timeline::chart(format!("timeline-{i}"), s, &keys, until_ns)
            })?,
        },
        Section {
            title: "Execution times",
            text: "From each task's begin to its end. Tasks of a group have equal work: the nearer \
                   their points, the more even the scheduler (equity).",
            charts: chart::times::chart(sides)?.into_iter().collect(),
        },
        Section {
            title: "What the CPUs did",
            text: "Shares of the makespan. Idle time while tasks wait is what a balancer should \
                   not leave (efficiency).",
            charts: each(&|i, s| chart::shares::chart(format!("shares-{i}"), s))?,
        },
        Section {
            title: "Where the tasks were",
            text: "The area of a square is the share of the task's time on that CPU. Few large \
                   squares in a row: the task stayed, and its caches with it (locality).",
            charts: each(&|i, s| chart::locality::chart(format!("locality-{i}"), s))?,
        },
        Section {
            title: "Fairness",
            text: "Jain's index of the tasks' speeds (work by time) in each group: 1 is even.",
            charts: chart::fairness::chart(sides)?.into_iter().collect(),
        },
        Section {
            title: "Wake-up latency",
            text: "From the moment a sleep should have ended to the task's own next instruction. \
                   ● half of the wake-ups are not later, ○ 90 %, ▲ 99 %, × 99.9 %, | the latest.",
            charts: chart::wakeups::chart(sides)?.into_iter().collect(),
        },
    ];
    Ok(all.into_iter().filter(|s| !s.charts.is_empty()).collect())
}
