// SPDX-License-Identifier: GPL-2.0-only
//! A [`Snapshot`] in the text format of OpenMetrics 1.0.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::PREFIX;
use super::name::Metric;
use crate::model::{CpuMetrics, CpuTimes, Described, Hist, Metrics, SLOTS, Snapshot, Task, Value};

/// Labels of a metric; empty: it has none.
type Labels = Vec<(&'static str, String)>;

/// `snapshot` in the text format, with the `tasks` busiest tasks besides the hard real-time ones.
///
/// # Errors
/// None that is known: memory is written to.
pub fn encode(snapshot: Arc<Snapshot>, tasks: usize) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Scrape { snapshot, tasks }));
    let mut out = String::new();
    text::encode(&mut out, &registry)?;
    Ok(out)
}

/// What one scrape is about.
#[derive(Debug)]
struct Scrape {
    snapshot: Arc<Snapshot>,
    tasks: usize,
}

impl Collector for Scrape {
    fn encode(&self, mut out: DescriptorEncoder<'_>) -> fmt::Result {
        let Snapshot { begin, machine, .. } = &*self.snapshot;
        let about: Labels = vec![
            ("version", begin.program.clone()),
            ("ops_name", begin.ops_name.clone()),
            ("kernel", begin.kernel.clone()),
            ("arch", begin.arch.clone()),
            ("preemption", begin.preemption.clone()),
            ("rt_cpus", begin.rt_cpus.clone()),
            ("nrt_cpus", begin.nrt_cpus.clone()),
        ];
        out.encode_descriptor("scheduler", "What is observed", None, MetricType::Info)?
            .encode_info(&about)?;
        figures::<Metrics>(&mut out, "", &[(Labels::new(), machine)])?;

        let cpus: Vec<_> =
            machine.cpus.iter().map(|(id, cpu)| (cpu_labels(*id, cpu), cpu)).collect();
        figures(&mut out, "cpu_", &cpus)?;
        let tasks = chosen(&self.snapshot, self.tasks);
        let rows: Vec<_> = tasks.iter().map(|task| (task_labels(task), &task.metrics)).collect();
        figures(&mut out, "task_", &rows)?;

        let times = |of: fn(&CpuTimes) -> &Hist, is_rt: u64| -> Vec<_> {
            let cpus = machine.cpus.iter().filter(|(_, cpu)| cpu.is_rt == is_rt);
            let times = |id| self.snapshot.cpu_times.get(id).map(of);
            cpus.filter_map(|(id, cpu)| Some((cpu_labels(*id, cpu), times(id)?))).collect()
        };
        histograms(
            &mut out,
            "cpu_residence",
            "Kernel sections of tasks that could leave, on each RT CPU since the scheduler began",
            &times(|times| &times.residence, 1),
        )?;
        histograms(
            &mut out,
            "cpu_eviction_latency",
            "Evictions from the attempt to running on this NRT CPU, while somebody watched",
            &times(|times| &times.arrival, 0),
        )?;
        let hard = tasks.iter().filter(|task| is_hard(task));
        histograms(
            &mut out,
            "task_wakeup_latency",
            "From wake-up to running, of each hard real-time task while somebody watched",
            &hard.map(|task| (task_labels(task), &task.waits)).collect::<Vec<_>>(),
        )?;
        out.encode_descriptor(
            "exporter_records_lost",
            "Records that did not reach the exporter, because it was too slow",
            None,
            MetricType::Counter,
        )
        .and_then(|mut lost| count(&mut lost, self.snapshot.lost.feed))
    }
}

fn cpu_labels(id: usize, cpu: &CpuMetrics) -> Labels {
    vec![("cpu", id.to_string()), ("kind", cpu.kind.clone())]
}

fn task_labels(task: &Task) -> Labels {
    let metrics = &task.metrics;
    vec![
        ("pid", metrics.pid.to_string()),
        ("comm", metrics.comm.clone()),
        ("class", metrics.class.clone()),
    ]
}

/// Is it a hard real-time task?
fn is_hard(task: &Task) -> bool {
    task.metrics.class == "RT0"
}

/// The hard real-time tasks, and the `n` others that were busiest in the intervals that the
/// model remembers: about the last interval alone, series would come and go all the time.
fn chosen(snapshot: &Snapshot, n: usize) -> Vec<&Task> {
    let tasks = snapshot.tasks.values().map(|task| &**task);
    let (mut chosen, mut others): (Vec<_>, Vec<_>) = tasks.partition(|task| is_hard(task));
    let busy = |task: &Task| task.points.iter().map(|point| point.cpu_pct).sum::<f64>();
    others.sort_by_cached_key(|task| std::cmp::Reverse((busy(task) * 1e3) as u64));
    chosen.extend(others.into_iter().take(n));
    chosen
}

/// All figures of `rows`.
fn figures<D: Described>(
    out: &mut DescriptorEncoder<'_>,
    prefix: &str,
    rows: &[(Labels, &D)],
) -> fmt::Result {
    let values: Vec<_> = rows.iter().map(|(labels, row)| (labels, row.values())).collect();
    for (nth, field) in D::FIELDS.iter().enumerate() {
        let Some(metric) = Metric::new(prefix, field) else { continue };
        let (counter, factor) = (metric.counter, metric.factor);
        let kind = if counter { MetricType::Counter } else { MetricType::Gauge };
        let mut family =
            out.encode_descriptor(&metric.stem, &metric.help, metric.unit.as_ref(), kind)?;
        for (labels, values) in &values {
            with(&mut family, labels, |sample| match (&values[nth], counter) {
                (Value::Int(n), true) if factor == 1.0 => count(sample, n.unsigned_abs()),
                (Value::Int(n), false) if factor == 1.0 => sample.encode_gauge(n),
                (Value::Int(n), _) => number(sample, counter, *n as f64 * factor),
                (Value::Float(n), _) => number(sample, counter, n * factor),
                (Value::Text(_), _) => Err(fmt::Error), // only labels are text
            })?;
        }
    }
    Ok(())
}

/// Histograms of times.
fn histograms(
    out: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: &[(Labels, &Hist)],
) -> fmt::Result {
    let help = format!("{help}; in the sum each time counts as the middle of its bucket");
    let unit = Unit::Seconds;
    let mut family = out.encode_descriptor(name, &help, Some(&unit), MetricType::Histogram)?;
    for (labels, hist) in rows {
        let (sum, buckets) = buckets(hist);
        with(&mut family, labels, |sample| {
            sample.encode_histogram(sum, hist.count(), &buckets, None::<&NoExemplars>)
        })?;
    }
    Ok(())
}

type NoExemplars = std::collections::HashMap<usize, Exemplar<Labels, f64>>;

/// The sum of all times, about, and the number of times up to each bound; seconds.
fn buckets(hist: &Hist) -> (f64, Vec<(f64, u64)>) {
    let from_s = |slot| Hist::from_ns(slot) as f64 / 1e9;
    let mut sum = 0.0;
    let bucket = |slot| {
        let n = hist.0.get(slot).copied().unwrap_or(0);
        let last = slot + 1 == SLOTS;
        let middle =
            if last { from_s(slot) } else { f64::midpoint(from_s(slot), from_s(slot + 1)) };
        sum += n as f64 * middle;
        (if last { f64::INFINITY } else { from_s(slot + 1) }, n)
    };
    let buckets = (0..SLOTS).map(bucket).collect();
    (sum, buckets)
}

/// A sample of `family` with `labels`.
fn with(
    family: &mut MetricEncoder<'_>,
    labels: &Labels,
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if labels.is_empty() { encode(family) } else { encode(&mut family.encode_family(labels)?) }
}

fn count(sample: &mut MetricEncoder<'_>, n: u64) -> fmt::Result {
    sample.encode_counter(&n, None::<&Exemplar<Labels, f64>>)
}

fn number(sample: &mut MetricEncoder<'_>, counter: bool, n: f64) -> fmt::Result {
    if counter {
        sample.encode_counter(&n, None::<&Exemplar<Labels, f64>>)
    } else {
        sample.encode_gauge(&n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Point, TaskMetrics};

    fn task(pid: u64, class: &str, cpu_pct: f64) -> (u64, Arc<Task>) {
        let metrics = TaskMetrics { pid, class: class.into(), ..TaskMetrics::default() };
        let points = [Point { cpu_pct, ..Point::default() }].into();
        (pid, Arc::new(Task { metrics, points, ..Task::default() }))
    }

    #[test]
    fn tasks_are_bounded_but_for_the_hard_ones() {
        let tasks = [
            task(1, "NRT", 1.0),
            task(2, "RT0", 0.0),
            task(3, "NRT", 90.0),
            task(4, "kernel", 50.0),
            task(5, "RT0", 0.5),
        ];
        let snapshot = Snapshot { tasks: tasks.into(), ..Snapshot::default() };
        let pids = |n| chosen(&snapshot, n).iter().map(|t| t.metrics.pid).collect::<Vec<_>>();
        assert_eq!(pids(2), [2, 5, 3, 4]);
        assert_eq!(pids(0), [2, 5]);
        assert_eq!(pids(50).len(), 5);
    }

    #[test]
    fn buckets_count_each_time_once() {
        let mut slots = vec![0; SLOTS];
        (slots[0], slots[3], slots[SLOTS - 1]) = (2, 5, 1);
        let (sum, buckets) = buckets(&Hist(slots));
        assert_eq!(buckets.len(), SLOTS);
        assert_eq!(buckets[0], (512e-9, 2));
        assert_eq!(buckets[3], (4_096e-9, 5));
        assert_eq!(buckets[SLOTS - 1], (f64::INFINITY, 1));
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0));
        let wanted = 2.0 * 256e-9 + 5.0 * 3_072e-9 + 2.147_483_648;
        assert!((sum - wanted).abs() < 1e-12, "{sum} is not {wanted}");
        assert_eq!(super::buckets(&Hist::default()).0, 0.0);
    }
}
