// SPDX-License-Identifier: GPL-2.0-only
//! What is gathered; tests/recorded/browser.rs looks at the page.

use std::sync::Arc;

use super::gather::{CAUSES, NOTES, Recorded, SPANS, Times, WOKEN};
use super::page;
use crate::model::{
    CauseMetrics, CpuMetrics, Event, Hist, Metrics, SLOTS, Snapshot, Task, TaskMetrics, What,
};
use crate::outlets::whole::Interval;

fn hist(slots: &[(usize, u64)]) -> Hist {
    let mut hist = vec![0; SLOTS];
    for (slot, n) in slots {
        hist[*slot] = *n;
    }
    Hist(hist)
}

fn task(pid: u64, class: &str, evictions: u64, waits: Hist) -> Arc<Task> {
    let cause = CauseMetrics { cause: "call write".into(), attempts: evictions, evictions };
    Arc::new(Task {
        metrics: TaskMetrics {
            pid,
            comm: format!("task{pid}"),
            class: class.into(),
            policy: "OTHER".into(),
            cpu_pct: 50.0,
            wait_max_us: 100.0,
            wait_max_at_s: 11.5,
            waits: waits.count(),
            ..TaskMetrics::default()
        },
        causes: vec![cause],
        waits,
        ..Task::default()
    })
}

/// The nth interval of a second.
fn snapshot(nth: u32, tasks: Vec<Arc<Task>>) -> Snapshot {
    let cpu = |rt_pct| CpuMetrics { kind: "RT".into(), is_rt: 1, rt_pct, ..CpuMetrics::default() };
    Snapshot {
        machine: Metrics {
            uptime_s: 10.0 + f64::from(nth),
            interval_s: 1.0,
            evictions_per_s: 10.0,
            residence_us_per_s: f64::from(nth),
            cpus: [(3, cpu(f64::from(nth % 100)))].into(),
            ..Metrics::default()
        },
        tasks: tasks.into_iter().map(|task| (task.metrics.pid, task)).collect(),
        ..Snapshot::default()
    }
}

fn recorded(snapshots: &[Snapshot]) -> Recorded {
    let mut recorded = Recorded::default();
    for snapshot in snapshots {
        recorded.add(&Interval::since(snapshot, 0));
    }
    recorded
}

#[test]
fn causes_and_waits_are_of_their_interval() {
    let busy = |evictions| task(7, "NRT", evictions, Hist::default());
    let hard = |slots: &[(usize, u64)]| task(8, "RT0", 0, hist(slots));
    let all = recorded(&[
        snapshot(1, vec![busy(100), hard(&[(4, 10)])]),
        snapshot(2, vec![busy(103), hard(&[(4, 10), (5, 2)])]),
        snapshot(3, vec![busy(103), hard(&[(4, 10), (5, 3)])]),
    ]);
    assert!(all.spans[0].causes.is_empty(), "what came before is not known");
    assert_eq!(all.spans[1].causes, [("call write".to_owned(), 3.0)].into());
    assert!(all.spans[2].causes.is_empty());
    assert!(all.spans[0].wakeups.is_empty());
    let second = &all.spans[1].wakeups[&8];
    assert_eq!((second.hist.count(), second.max_us), (2, 100.0), "the worst case was in it");
    let third = &all.spans[2].wakeups[&8];
    assert!(third.max_us < 100.0 && third.max_us * 1e3 >= Hist::from_ns(5) as f64, "{third:?}");
    assert_eq!((all.from_s, all.len_s()), (10.0, 3.0));
    assert_eq!(all.tasks[&7].run_s, 1.5);
}

#[test]
fn a_long_recording_is_joined_and_keeps_its_sums() {
    let snapshots: Vec<Snapshot> = (1..=5_000).map(|nth| snapshot(nth, Vec::new())).collect();
    let all = recorded(&snapshots);
    assert!((SPANS..2 * SPANS).contains(&all.spans.len()), "{}", all.spans.len());
    let evictions: f64 = all.spans.iter().map(|span| span.evictions).sum();
    assert!((evictions - 50_000.0).abs() < 1e-6, "{evictions}");
    let mean = |of: fn(&super::gather::Span) -> f64| {
        all.spans.iter().map(|span| of(span) * span.len_s()).sum::<f64>() / all.len_s()
    };
    assert!((mean(|s| s.residence_us_per_s) - 2_500.5).abs() < 1e-6);
    assert!((mean(|s| s.shares[&3].rt_pct) - 49.5).abs() < 1e-6);
    let gapless = all.spans.windows(2).all(|two| (two[0].end_s - two[1].begin_s).abs() < 1e-9);
    assert!(gapless);
}

#[test]
fn who_has_ended_stays_in_the_table() {
    let all =
        recorded(&[snapshot(1, vec![task(7, "NRT", 0, Hist::default())]), snapshot(2, vec![])]);
    assert!(all.tasks[&7].ended);
    assert!(page(&all, "x").expect("a page").contains("task7/7, ended"));
    let storm: Vec<Snapshot> = (0..50)
        .map(|nth| {
            let tasks = (0..100).map(|i| task(u64::from(nth) * 100 + i, "NRT", 0, Hist::default()));
            snapshot(nth + 1, tasks.collect())
        })
        .collect();
    let n = recorded(&storm).tasks.len();
    assert!(n < 4_200, "{n} of 5,000 tasks are kept");
}

#[test]
fn evictions_one_by_one_have_their_times() {
    let what = |arrived_us| What::Eviction {
        cause: "fault".into(),
        from: 3,
        to: 0,
        left_us: 1.0,
        arrived_us,
    };
    let mut one = snapshot(1, Vec::new());
    one.events = [5.0, 20.0, 400.0]
        .map(|us| Event { at_s: 10.5, pid: 1, comm: "x".into(), what: what(us) })
        .into();
    one.nr_events = 3;
    let all = recorded(&[one]);
    let arrivals = &all.spans[0].arrivals;
    assert_eq!((arrivals.hist.count(), arrivals.max_us), (3, 400.0));
    let median = arrivals.quantile_us(0.5).expect("some");
    assert!((12.0..=24.6).contains(&median), "{median}");
    assert_eq!(Times::one(0.0).hist.0[0], 1);
    assert_eq!(Times::one(1e9).hist.0[SLOTS - 1], 1);
    assert_eq!(Times::one(0.512).hist.0[1], 1);
}

#[test]
fn what_a_report_keeps_is_bounded_and_the_rest_is_told() {
    let note = |nr: usize| What::Note { text: nr.to_string() };
    let event = |nr| Event { at_s: 10.5, pid: 0, comm: String::new(), what: note(nr) };
    let mut first = snapshot(1, Vec::new());
    first.events = (0..NOTES + 3).map(event).collect();
    // as if there had been more in this interval than can be kept
    first.nr_events = first.events.len() as u64 + 7;
    // each wakes up once in each interval
    let woken = |nth: u32| {
        let task_of = |pid| task(pid, "RT0", 0, hist(&[(4, nth.into())]));
        snapshot(nth, (1..=WOKEN as u64 + 5).map(task_of).collect())
    };
    let mut all = recorded(&[first, woken(1), woken(2), woken(3)]);
    assert_eq!((all.notes.len(), all.notes_left_out, all.events_left_out), (NOTES, 3, 7));
    assert_eq!(all.notes[0].1, "0", "the first ones stay");
    let kept: Vec<_> = all.spans.iter().map(|span| span.wakeups.len()).collect();
    assert_eq!((kept.as_slice(), all.woken_left_out), ([0, 0, WOKEN, WOKEN].as_slice(), 10));
    // spans that are joined had other tasks, and other causes
    for (nth, span) in all.spans.iter_mut().enumerate() {
        let name = |cause: usize| format!("{nth} {cause}");
        span.causes = (0..CAUSES).map(|cause| (name(cause), cause as f64)).collect();
        span.wakeups =
            (0..WOKEN).map(|n| ((nth * WOKEN + n) as u64, Times::one(n as f64))).collect();
    }
    let last = all.spans[3].clone();
    all.spans.resize(2 * SPANS - 1, last);
    all.add(&Interval::since(&woken(4), 0));
    assert_eq!(all.spans.len(), SPANS);
    let fits =
        |span: &super::gather::Span| span.causes.len() <= CAUSES && span.wakeups.len() <= WOKEN;
    assert!(all.spans.iter().all(fits));
    assert!(all.spans[0].causes.values().all(|n| *n >= (CAUSES / 2) as f64), "the least stay");
    assert!(all.spans[0].wakeups.values().all(|times| times.max_us >= (WOKEN / 2) as f64));
    let page = page(&all, "x").expect("a page");
    for told in ["3 notes at the end", "7 events were more", "points of wake-up latency"] {
        assert!(page.contains(told), "{told}");
    }
}
