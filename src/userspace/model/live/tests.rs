// SPDX-License-Identifier: GPL-2.0-only

use std::time::Duration;

use super::*;
use crate::abi::bindings::artis_cause;
use crate::feed::frame::{HEAD, encode, kind, put};
use crate::model::{CpuReading, What};

const SECOND: u64 = 1_000_000_000;
const STARTED: u64 = 5 * SECOND;

/// A record of a task that began to exist at `start_ns`.
fn record(pid: u32, start_ns: u64) -> artis_task_record {
    // SAFETY: the struct is plain integers: all zeroes are valid.
    let mut record: artis_task_record = unsafe { std::mem::zeroed() };
    (record.pid, record.tgid, record.start_ns) = (pid, pid, start_ns);
    (record.policy, record.normal_prio, record.prio) = (0, 120, 120);
    record.comm[..4].copy_from_slice(&b"task".map(|byte| byte as std::ffi::c_char));
    record
}

/// A model, and what it is fed with.
struct Fed {
    model: Model,
    now_ns: u64,
}

impl Fed {
    /// A stream that has begun, with these tasks.
    fn new(tasks: &[artis_task_record]) -> Self {
        let mut fed = Self { model: Model::default(), now_ns: STARTED + SECOND };
        fed.begin(&Begin { started_ns: STARTED, arch: "x86_64".into(), ..Begin::default() });
        tasks.iter().for_each(|task| fed.task(task));
        assert!(!fed.reading(true), "the first reading ends no interval");
        fed
    }

    fn frame(&mut self, bytes: &[u8]) -> bool {
        let (frame, rest) = Frame::split(bytes).expect("sound").expect("whole");
        assert!(rest.is_empty());
        self.model.take(&frame).expect("understood")
    }

    fn begin(&mut self, begin: &Begin) {
        let mut bytes = Vec::new();
        encode(&mut bytes, kind::BEGIN, self.now_ns, begin);
        self.frame(&bytes);
    }

    fn task(&mut self, record: &artis_task_record) {
        // SAFETY: the struct is plain integers, and outlives the slice.
        let raw = unsafe {
            std::slice::from_raw_parts(
                std::ptr::from_ref(record).cast::<u8>(),
                size_of::<artis_task_record>(),
            )
        };
        let mut bytes = Vec::new();
        put(&mut bytes, kind::TASK, self.now_ns, &raw[HEAD..]);
        self.frame(&bytes);
    }

    fn reading(&mut self, every_task: bool) -> bool {
        self.reading_with(every_task, 0)
    }

    /// Ends a second in which so many records were lost.
    fn reading_with(&mut self, every_task: bool, records_lost: u64) -> bool {
        let cpu = CpuReading { records_lost, ..CpuReading::default() };
        let (now_ns, started_ns) = (self.now_ns, STARTED);
        let cpus = vec![cpu];
        let reading = Reading { now_ns, started_ns, every_task, cpus, ..Reading::default() };
        let mut bytes = Vec::new();
        encode(&mut bytes, kind::READING, self.now_ns, &reading);
        self.now_ns += SECOND;
        self.frame(&bytes)
    }

    fn pids(&self) -> Vec<u64> {
        self.model.snapshot().tasks.keys().copied().collect()
    }
}

#[test]
fn rates_are_of_the_interval() {
    let mut task = record(7, 1);
    (task.exec_ns, task.stats.attempts) = (SECOND, 1_000);
    let mut fed = Fed::new(&[task]);
    task.exec_ns += SECOND / 4;
    task.stats.attempts += 30;
    task.stats.run_ns[1] = SECOND / 10;
    task.stats.runs = [2, 3];
    (task.stats.waits, task.stats.wait_max_ns) = (1, 800);
    task.stats.wait.slot[1] = 1;
    task.stats.causes[0] = artis_cause { cause: 0x7fff_ffff, attempts: 3, ..no_cause() };
    task.stats.causes[1] = artis_cause { cause: 258, attempts: 9, ..no_cause() };
    fed.task(&task);
    assert!(fed.reading(false));
    let seen = &fed.model.snapshot().tasks[&7];
    let metrics = &seen.metrics;
    assert_eq!((metrics.cpu_pct, metrics.on_rt_pct, metrics.run_s), (25.0, 10.0, 1.25));
    assert_eq!((metrics.attempts, metrics.attempts_per_s, metrics.runs_per_s), (1_030, 30.0, 5.0));
    assert_eq!((metrics.wait_p50_us, metrics.wait_p99_us), (0.768, 0.8), "none above the longest");
    assert_eq!(seen.causes.len(), 2);
    assert_eq!((metrics.comm.as_str(), metrics.policy.as_str()), ("task", "OTHER"));
    if cfg!(target_arch = "x86_64") {
        assert_eq!(metrics.top_cause, "call openat");
    }

    // a second without a record
    assert!(fed.reading(false));
    let seen = &fed.model.snapshot().tasks[&7];
    assert_eq!((seen.metrics.cpu_pct, seen.metrics.attempts), (0.0, 1_030));
    let points: Vec<_> = seen.points.iter().map(|point| point.cpu_pct).collect();
    assert_eq!(points, [25.0, 0.0]);
}

fn no_cause() -> artis_cause {
    artis_cause { cause: 0, attempts: 0, evictions: 0 }
}

#[test]
fn a_new_task_has_done_all_of_it_in_this_interval() {
    let mut fed = Fed::new(&[]);
    let mut task = record(8, 2);
    task.exec_ns = SECOND / 2;
    fed.task(&task);
    fed.reading(false);
    assert_eq!(fed.model.snapshot().tasks[&8].metrics.cpu_pct, 50.0);
    // but one that has run for longer was only not heard of: its records were lost
    let mut old = record(9, 1);
    old.exec_ns = 7 * SECOND;
    fed.task(&old);
    fed.reading_with(false, 5);
    assert_eq!(fed.model.snapshot().tasks[&9].metrics.cpu_pct, 0.0);
    old.exec_ns += SECOND / 4;
    fed.task(&old);
    fed.reading_with(false, 5);
    assert_eq!(fed.model.snapshot().tasks[&9].metrics.cpu_pct, 25.0);
}

#[test]
fn an_id_used_again_is_another_task() {
    let mut task = record(7, 1);
    task.exec_ns = 10 * SECOND;
    let mut fed = Fed::new(&[task]);
    fed.reading(false);
    let mut other = record(7, 99);
    other.exec_ns = SECOND / 5;
    fed.task(&other);
    fed.reading(false);
    let seen = &fed.model.snapshot().tasks[&7];
    assert_eq!((seen.metrics.cpu_pct, seen.points.len()), (20.0, 1));
    // the last record of the first comes late: it is not the one that lives now
    fed.task(&artis_task_record { exited: 1, ..task });
    fed.reading(false);
    assert_eq!(fed.pids(), [7]);
}

#[test]
fn who_exits_leaves_an_event_and_does_not_come_back() {
    let task = record(7, 1);
    let mut fed = Fed::new(&[task, record(8, 1)]);
    fed.task(&artis_task_record { exited: 1, ..task });
    assert!(fed.reading(false));
    assert_eq!(fed.pids(), [8]);
    let snapshot = fed.model.snapshot();
    let event = snapshot.events.back().expect("an event");
    assert_eq!((event.pid, &event.what, snapshot.nr_events), (7, &What::Exit, 1));
    // a zombie is met by walks over all tasks for as long as nobody waits for it
    for _ in 0..4 {
        fed.task(&task);
        fed.task(&record(8, 1));
        fed.reading(true);
        assert_eq!(fed.pids(), [8]);
    }
    fed.task(&record(8, 1));
    fed.reading(true);
    assert!(fed.model.gone.is_empty(), "nobody meets it any more");
}

#[test]
fn who_is_not_met_by_a_walk_over_all_is_gone() {
    let mut fed = Fed::new(&[record(7, 1), record(8, 1)]);
    fed.reading(false);
    assert_eq!(fed.pids(), [7, 8], "idle ones stay");
    fed.task(&record(8, 1));
    fed.reading(true);
    assert_eq!(fed.pids(), [8]);
    // unless its record may have been lost
    for lost in 1..MISSED_MAX {
        fed.reading_with(true, lost.into());
        assert_eq!(fed.pids(), [8], "{lost}");
    }
    fed.reading_with(true, MISSED_MAX.into());
    assert_eq!(fed.pids(), [0; 0]);
}

#[test]
fn another_scheduler_is_another_beginning() {
    let mut fed = Fed::new(&[record(7, 1)]);
    fed.reading(false);
    fed.begin(&Begin { started_ns: 9 * SECOND, ..Begin::default() });
    assert!(!fed.reading(true), "nothing is known of the time before");
    assert!(fed.reading(false));
    assert_eq!((fed.pids().len(), fed.model.snapshot().begin.started_ns), (0, 9 * SECOND));
}

#[test]
fn a_changed_policy_is_an_event() {
    let policy = |value: &str| [("predict-k".to_owned(), value.to_owned())].into();
    let begin = Begin { started_ns: STARTED, policy: policy("8"), ..Begin::default() };
    let mut fed = Fed::new(&[record(7, 1)]);
    fed.begin(&begin);
    fed.begin(&Begin { policy: policy("3"), rt_cpus: "1".into(), ..begin });
    assert!(fed.reading(false), "the stream goes on");
    assert_eq!(fed.pids(), [7]);
    let notes: Vec<_> = fed.model.snapshot().events.iter().map(|event| &event.what).collect();
    let note = |text: &str| What::Note { text: text.into() };
    assert_eq!(notes, [&note("RT CPUs are 1 (were )"), &note("predict-k is 3 (was 8)")]);
}

#[test]
fn a_note_is_no_longer_than_can_be_read() {
    let mut fed = Fed::new(&[]);
    for cpus in ["1".repeat(5_000), "ä".repeat(5_000)] {
        fed.begin(&Begin { started_ns: STARTED, rt_cpus: cpus, ..Begin::default() });
    }
    fed.reading(false);
    let mut notes = fed.model.snapshot().events.iter();
    let short = |event: &Event| {
        let What::Note { text } = &event.what else { return false };
        text.starts_with("RT CPUs are ")
            && text.ends_with("...")
            && text.len() <= happened::NOTE_MAX
    };
    assert!(notes.len() == 2 && notes.all(short));
}

#[test]
fn losses_are_told_once() {
    let mut fed = Fed::new(&[]);
    let mut bytes = Vec::new();
    encode(&mut bytes, kind::LOST, 0, &Lost { feed: 4, ..Lost::default() });
    fed.frame(&bytes);
    fed.reading_with(false, 3);
    fed.reading_with(false, 3);
    let snapshot = fed.model.snapshot();
    assert_eq!(snapshot.lost, Lost { ring: 3, over_budget: 0, feed: 4 });
    assert_eq!(snapshot.nr_events, 2, "{:?}", snapshot.events);
}

#[test]
fn a_viewer_who_wants_less_often_gets_less_often() {
    let mut fed = Fed::new(&[record(7, 1)]);
    fed.model.interval_ns = Model::new(Duration::from_secs(3)).interval_ns;
    let mut task = record(7, 1);
    let ended: Vec<_> = (1..=6)
        .map(|second| {
            task.exec_ns = second * SECOND / 2;
            fed.task(&task);
            fed.reading(false)
        })
        .collect();
    assert_eq!(ended, [false, false, true, false, false, true]);
    assert_eq!(fed.model.snapshot().tasks[&7].metrics.cpu_pct, 50.0);
    assert_eq!(fed.model.snapshot().machine.interval_s, 3.0);
}

/// An hour of tasks that come and go, some of whose last records are lost.
#[test]
fn a_storm_of_forks_leaves_nothing_behind() {
    const SECONDS: u64 = 3_600;
    const FORKS: u32 = 200;
    let steady: Vec<_> = (1..=20).map(|pid| record(pid, 1)).collect();
    let mut fed = Fed::new(&steady);
    let (mut pid, mut tasks_max, mut gone_max) = (1_000, 0, 0);
    for second in 1..=SECONDS {
        for _ in 0..FORKS {
            pid = if pid > 4_000_000 { 1_000 } else { pid + 1 };
            let task = record(pid, fed.now_ns + u64::from(pid));
            fed.task(&task);
            // of some the last record does not come: over the budget
            if pid % 10 != 0 {
                fed.task(&artis_task_record { exited: 1, ..task });
            }
        }
        let every_task = second % 10 == 0;
        if every_task {
            steady.iter().for_each(|task| fed.task(task));
        }
        fed.reading(every_task);
        tasks_max = tasks_max.max(fed.model.tasks.len()).max(fed.model.snapshot().tasks.len());
        gone_max = gone_max.max(fed.model.gone.len());
    }
    let forks_in_10_s = FORKS as usize * 10;
    // in the walk over all nobody of the last second has left yet
    assert!(tasks_max <= 20 + forks_in_10_s / 10 * 2, "{tasks_max} tasks");
    assert!(gone_max <= forks_in_10_s * 2, "{gone_max} that are gone");
    let snapshot = fed.model.snapshot();
    assert_eq!(snapshot.events.len(), EVENTS);
    assert!(snapshot.events.capacity() < 4 * EVENTS, "{}", snapshot.events.capacity());
    assert_eq!(snapshot.nr_events, SECONDS * u64::from(FORKS) * 9 / 10);
    assert_eq!(snapshot.tasks[&1].points.len(), crate::model::POINTS);
}

/// A recording may have been made by any program, and hold any number of tasks.
#[test]
fn tasks_without_end_are_left_out() {
    let mut fed = Fed::new(&[]);
    let ended = artis_task_record { exited: 1, ..record(u32::MAX, 0) };
    for pid in 1..=TASKS_MAX as u32 + 9 {
        fed.task(&record(pid, 1));
        fed.task(&artis_task_record { start_ns: pid.into(), ..ended });
    }
    assert_eq!((fed.model.tasks.len(), fed.model.gone.len()), (TASKS_MAX, TASKS_MAX));
    fed.reading(false);
    let told = "9 records are of more tasks than are shown";
    let is_told = |event: &Event| matches!(&event.what, What::Note { text } if text == told);
    assert!(fed.model.snapshot().events.iter().any(is_told));
}

#[test]
fn events_of_an_interval_are_bounded_and_counted() {
    let mut fed = Fed::new(&[]);
    let names = |value: &str| {
        let knob = |nr: usize| (nr.to_string(), value.to_owned());
        (0..EVENTS_MAX / 2 + 9).map(knob).collect()
    };
    // one frame tells of half as many changes as are kept
    for value in ["1", "2", "3", "4"] {
        let policy = names(value);
        fed.begin(&Begin { started_ns: STARTED, policy, ..Begin::default() });
        assert!(fed.model.fresh.len() <= EVENTS_MAX, "{} events", fed.model.fresh.len());
    }
    let told = (EVENTS_MAX / 2 + 9) * 3;
    fed.reading_with(false, 5);
    let snapshot = fed.model.snapshot();
    // with the note of lost records
    assert_eq!((snapshot.events.len(), snapshot.nr_events), (EVENTS_MAX, told as u64 + 1));
}
