// SPDX-License-Identifier: GPL-2.0-only
//! From what was measured to the result.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anyhow::Result;

use super::watch::Death;
use crate::actor::report::{Histogram, Report, latency};
use crate::measure::meters::Figures;
use crate::measure::notes::Notes;
use crate::measure::shares::OwnTime;
use crate::measure::trouble::seen;
use crate::measure::{cpu_stat, groups, machine, shares, spans};
use crate::plan::Plan;
use crate::result::{Latency, Run, SCHEMA, Scheduler, Span, Task};

/// A run that is over.
pub struct Ended {
    /// CLOCK_MONOTONIC of the start signal.
    pub start_ns: u64,
    /// What cut it.
    pub cut: Option<String>,
    /// By task: it was a real-time one.
    pub rt: Vec<bool>,
    /// By task, those that died before the release.
    pub deaths: BTreeMap<usize, Death>,
    /// By task.
    pub reports: Vec<Option<Report>>,
    /// The kernel's.
    pub figures: Figures,
}

/// # Errors
/// When the kernel does not tell what machine this is.
pub fn run(plan: &Plan, scheduler: Scheduler, mut notes: Notes, ended: Ended) -> Result<Run> {
    let Ended { figures, reports, .. } = &ended;
    for note in reports.iter().flatten().flat_map(|report| &report.notes) {
        notes.missing("memory", note);
    }
    let ends = (0..plan.tasks.len()).map(|i| ended.end_ns(i));
    let makespan_ns = ends.max().unwrap_or(0);
    let timeline = ended.timeline(makespan_ns);
    notes.warn(seen::lost(figures.lost));
    if let Some(until_ns) = ended.timeline_until_ns() {
        notes.missing(
            "timeline",
            format!(
                "without perf events tasks keep few spans, and one's list was full after {:?}: \
                 run as root, or set /proc/sys/kernel/perf_event_paranoid to 2",
                Duration::from_nanos(until_ns)
            ),
        );
    }

    let by_timeline =
        figures.switches.is_some().then(|| spans::migrations(&timeline, plan.tasks.len()));
    let migrations = figures.migrations.clone().or(by_timeline);
    let tasks: Vec<Task> = (0..plan.tasks.len())
        .map(|i| ended.task(plan, i, migrations.as_ref().map(|migrations| migrations[i])))
        .collect();
    if figures.cpu_time_ns.is_none() && tasks.iter().any(|task| task.cpu_time_ns.is_none()) {
        notes.missing(
            "cpu_time_ns",
            "without perf events a task tells itself where it was, and one that was killed did \
             not: run as root, or set /proc/sys/kernel/perf_event_paranoid to 2",
        );
    }
    let own = own_time(&tasks, &ended.rt);
    if own.is_none() {
        notes
            .missing("rt, fair and other of the CPUs", "they follow from cpu_time_ns of each task");
    }
    let tick_ns = cpu_stat::tick_ns();
    let cpus = shares::cpus(&figures.ticks, tick_ns, makespan_ns, own.as_ref());
    notes.warn(seen::noisy(&cpus, tick_ns, makespan_ns));
    notes.warn(seen::steal(&figures.ticks, tick_ns, makespan_ns));
    notes.warn(seen::rt_throttled_here(&cpus));
    Ok(Run {
        schema: SCHEMA,
        scene: plan.scene.clone(),
        why: plan.why.clone(),
        good: plan.good.clone(),
        scheduler,
        machine: machine::machine()?,
        scale: plan.scale,
        makespan_ns,
        cut: ended.cut.is_some(),
        energy_uj: figures.energy_uj,
        groups: groups::groups(plan, &tasks, reports),
        tasks,
        cpus,
        timeline,
        warnings: notes.warnings,
        missing: notes.missing,
        sources: notes.sources,
    })
}

impl Ended {
    /// From the start signal.
    fn end_ns(&self, i: usize) -> u64 {
        let died = self.deaths.get(&i).map(|death| death.at_ns.saturating_sub(self.start_ns));
        let told = self.reports[i].as_ref().map(|report| report.ended_ns);
        // the report that was made for a dead task tells no end
        died.or(told).unwrap_or(0)
    }

    fn task(&self, plan: &Plan, i: usize, migrations: Option<u64>) -> Task {
        let planned = &plan.tasks[i];
        let unknown = Report::default();
        let told = self.reports[i].as_ref();
        let report = told.unwrap_or(&unknown);
        let stat = self.figures.stat[i];
        let cpu_ns = stat.map_or(0, |stat| stat.cpu_ns);
        let counted = |calls: &Vec<u64>| calls[i].saturating_sub(report.calls_after_end);
        Task {
            group: planned.group,
            nth: planned.nth,
            wall_ns: self.end_ns(i).saturating_sub(report.begun_ns),
            begun_ns: report.begun_ns,
            cpu_ns,
            wait_ns: stat.map(|stat| stat.wait_ns),
            steps: report.steps,
            cpu_time_ns: match &self.figures.cpu_time_ns {
                Some(times) => Some(times[i].clone()),
                None => told.filter(|told| told.steps > 0).map(|told| told.time_per_cpu(cpu_ns)),
            },
            voluntary_switches: stat.map_or(0, |stat| stat.voluntary),
            involuntary_switches: stat.map_or(0, |stat| stat.involuntary),
            migrations,
            calls_seen: self
                .figures
                .calls
                .as_ref()
                .filter(|_| !self.deaths.contains_key(&i))
                .map(counted),
            calls_made: report.calls.total(),
            evictions: self.figures.evictions.as_ref().and_then(|told| told.by_task[i].clone()),
            wakeup: distribution(report.wakeup.as_ref()),
            periods: report.periods,
            misses: report.misses,
            item_age: distribution(report.item_age.as_ref()),
            cut: self.cut_of(i),
        }
    }

    /// Why a task did not finish.
    fn cut_of(&self, i: usize) -> Option<String> {
        if let Some(death) = self.deaths.get(&i) {
            let told = self.reports[i].as_ref().and_then(|report| report.failed.clone());
            return Some(told.unwrap_or_else(|| death.why.clone()));
        }
        let Some(report) = &self.reports[i] else {
            return Some("its report was not written".into());
        };
        let stopped = || self.cut.clone().unwrap_or_else(|| "stopped by the runner".into());
        report.failed.clone().or_else(|| report.cut.then(stopped))
    }

    /// In order of begin.
    fn timeline(&self, makespan_ns: u64) -> Vec<Span> {
        let mut timeline: Vec<Span> = match &self.figures.switches {
            Some(switches) => {
                let task_of: HashMap<i32, u32> =
                    self.figures.pids.iter().zip(0..).map(|(pid, task)| (*pid, task)).collect();
                let of_cpu = |(cpu, switches): &(u32, Vec<_>)| {
                    let end_ns = self.start_ns + makespan_ns;
                    spans::of_cpu(*cpu, switches, &task_of, self.start_ns, end_ns)
                };
                switches.iter().flat_map(of_cpu).collect()
            }
            None => self.told_spans().collect(),
        };
        timeline.sort_by_key(|span| (span.from_ns, span.task));
        timeline
    }

    /// The tasks' own.
    fn told_spans(&self) -> impl Iterator<Item = Span> {
        self.reports.iter().zip(0..).flat_map(|(report, task)| {
            let span = move |span: &crate::actor::report::Span| Span {
                task,
                cpu: span.cpu,
                from_ns: span.from_ns,
                to_ns: span.to_ns,
            };
            report.iter().flat_map(|report| &report.spans).map(span)
        })
    }

    /// From when on a task's own spans are not known, if these are used.
    fn timeline_until_ns(&self) -> Option<u64> {
        let own = self.reports.iter().flatten().filter(|_| self.figures.switches.is_none());
        own.filter_map(|report| report.spans_until_ns).min()
    }
}

/// `None` if a task's time is not known.
fn own_time(tasks: &[Task], rt: &[bool]) -> Option<OwnTime> {
    let mut own = OwnTime::default();
    for (task, rt) in tasks.iter().zip(rt) {
        let sums = if *rt { &mut own.rt_ns } else { &mut own.fair_ns };
        for (cpu, time_ns) in task.cpu_time_ns.as_ref()? {
            *sums.entry(*cpu).or_default() += time_ns;
        }
    }
    Some(own)
}

fn distribution(histogram: Option<&Histogram>) -> Option<Latency> {
    histogram.filter(|histogram| histogram.count() > 0).map(latency)
}
