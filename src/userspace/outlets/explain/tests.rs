// SPDX-License-Identifier: GPL-2.0-only
//! Stories of tasks made by hand; tests/recorded/story.rs tells those of a real recording.

use super::*;
use crate::model::{CauseMetrics, Hist, History, Metrics, SLOTS, TaskMetrics};

fn begin() -> Begin {
    let policy = [("predict", "least"), ("predict-c-us", "1000 µs"), ("predict-k", "8 periods")];
    Begin {
        rt_cpus: "2-3".into(),
        nrt_cpus: "0-1".into(),
        policy: policy.map(|(name, value)| (name.into(), value.into())).into(),
        ..Begin::default()
    }
}

/// Waits: so many in each slot.
fn waits(slots: &[(usize, u64)]) -> Hist {
    let mut hist = vec![0; SLOTS];
    for (slot, n) in slots {
        hist[*slot] = *n;
    }
    Hist(hist)
}

fn worker() -> Task {
    Task {
        metrics: TaskMetrics {
            pid: 4_243,
            tgid: 4_242,
            comm: "worker".into(),
            class: "NRT".into(),
            policy: "OTHER".into(),
            weight: 100,
            cpu: 2,
            runnable: 1,
            may_nrt: 1,
            may_rt: 1,
            cpu_pct: 87.5,
            on_rt_pct: 60.0,
            attempts: 1_250,
            attempts_per_s: 56.0,
            evictions: 120,
            moves_rt: 121,
            hits: 20,
            misses: 100,
            waits: 400,
            wait_max_us: 1_500.0,
            wait_max_at_s: 95.0,
            ..TaskMetrics::default()
        },
        causes: vec![
            CauseMetrics { cause: "call write".into(), attempts: 1_200, evictions: 100 },
            CauseMetrics { cause: "fault".into(), attempts: 50, evictions: 20 },
        ],
        waits: waits(&[(6, 300), (8, 100)]),
        history: History {
            last_ns: 99_500_000_000,
            quiet_run_ns: 3_000_000,
            period_ns: 20_000_000,
            period_run_ns: 4_000_000,
            least_run_ns: 500_000,
        },
        read_ns: 100_000_000_000,
        cpus_allowed: 4,
        ..Task::default()
    }
}

fn realtime(pid: u64, prio: u64) -> Task {
    Task {
        metrics: TaskMetrics {
            pid,
            tgid: pid,
            comm: format!("loop{prio}"),
            class: "RT0".into(),
            policy: "FIFO".into(),
            rt_prio: prio,
            cpu: 2,
            may_rt: 1,
            cpu_pct: 5.0,
            on_rt_pct: 5.0,
            waits: 1_000,
            wait_max_us: 250.0,
            wait_max_at_s: 90.0,
            wait_max_after: "loop90/51".into(),
            ..TaskMetrics::default()
        },
        waits: waits(&[(4, 999), (10, 1)]),
        cpus_allowed: 1,
        ..Task::default()
    }
}

fn snapshot(tasks: Vec<Task>) -> Snapshot {
    Snapshot {
        begin: Arc::new(begin()),
        machine: Metrics { uptime_s: 100.0, ..Metrics::default() },
        tasks: tasks.into_iter().map(|task| (task.metrics.pid, Arc::new(task))).collect(),
        ..Snapshot::default()
    }
}

/// What is told of the first of `tasks`, in one line.
fn told(tasks: Vec<Task>) -> String {
    let task = Arc::new(tasks[0].clone());
    let snapshot = snapshot(tasks);
    let seen = Seen::new(&snapshot, task);
    let text = render(&Story::of(&seen, "It was watched for 1.00 s."), 80);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn contains(text: &str, words: &[&str]) {
    for words in words {
        assert!(text.contains(words), "no {words:?} in {text}");
    }
}

#[test]
fn a_story_looks_like_this() {
    let leader = TaskMetrics { pid: 4_242, comm: "server".into(), ..TaskMetrics::default() };
    let leader = Task { metrics: leader, ..Task::default() };
    let snapshot = snapshot(vec![worker(), leader]);
    let seen = Seen::new(&snapshot, Arc::new(worker()));
    let story = Story::of(&seen, "It was watched for 1.00 s.");
    insta::assert_snapshot!(render(&story, 80));
    assert!(render(&story, 60).lines().all(|line| line.chars().count() <= 60));
    insta::assert_json_snapshot!("a_story_as_json", story);
}

#[test]
fn each_class_by_its_rule() {
    let of = |class: &str, may_nrt, may_rt, cpus| {
        let mut task = worker();
        (task.metrics.class, task.cpus_allowed) = (class.into(), cpus);
        (task.metrics.may_nrt, task.metrics.may_rt) = (may_nrt, may_rt);
        task.metrics.rt1 = 40;
        told(vec![task])
    };
    contains(&of("NRT", 1, 0, 2), &["affinity holds NRT CPUs only", "2 CPUs: NRT ones only"]);
    assert!(!of("NRT", 1, 0, 2).contains("Prediction"), "nobody asks for it");
    contains(&of("bound", 0, 1, 2), &["nowhere to go", "taskset -pc 0-1 4243"]);
    contains(&of("bound", 1, 0, 1), &["may run on one CPU only, an NRT CPU"]);
    contains(&of("kernel", 1, 1, 4), &["Kernel thread (SCHED_OTHER)", "kernel thread 4243"]);
    let firm = of("RT1+", 1, 1, 4);
    contains(&firm, &["Firm real-time (RT1+) of priority 40, under SCHED_OTHER", "Its weight is"]);
    let kernel = of("kernel RT", 0, 1, 1);
    contains(&kernel, &["Kernel thread of a real-time policy"]);
    assert!(!kernel.contains("Advice"), "there is nothing to do: {kernel}");
    let free = of("RT", 1, 1, 4);
    contains(&free, &["not bound to RT CPUs", "unwise", "taskset -pc 2-3 4243"]);
    assert!(!free.contains("Attempts"), "real-time tasks may enter the kernel: {free}");
}

#[test]
fn a_hard_task_that_waited_for_another() {
    let text = told(vec![realtime(50, 80), realtime(51, 90)]);
    contains(
        &text,
        &[
            "Hard real-time (RT0): SCHED_FIFO priority 80, and its affinity holds RT CPUs only",
            "The longest ended 10.0 s ago; before it loop90 (51) had the CPU",
            "another real-time task, loop90 (51), which has the higher priority (SCHED_FIFO \
             priority 90)",
        ],
    );
    contains(&told(vec![realtime(50, 80)]), &["before it loop90 (51) had the CPU"]);
    assert!(!told(vec![realtime(50, 80)]).contains("Advice"), "who that was is not known");
    let mut quick = realtime(50, 80);
    quick.metrics.wait_max_us = 3.0;
    let text = told(vec![quick, realtime(51, 90)]);
    assert!(!text.contains("Advice"), "3 us are no reason to complain: {text}");
}

#[test]
fn who_has_ended_is_told_as_such() {
    let snapshot = snapshot(Vec::new());
    let seen = Seen::new(&snapshot, Arc::new(worker()));
    contains(&render(&Story::of(&seen, ""), 200), &["It has ended; it ran last on CPU 2"]);
}
