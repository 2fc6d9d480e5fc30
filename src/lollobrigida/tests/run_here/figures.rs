// SPDX-License-Identifier: GPL-2.0-only
//! The figures of a run agree with each other and with the plan.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use lollobrigida::measure::cpu_stat::{CpuStat, tick_ns};
use lollobrigida::plan::{Phase, Plan, Rhythm, Task};
use lollobrigida::result::Run;
use lollobrigida::scene::{Cgroup, Cpus, Sched};

use super::help::{SOME_STEPS, assert_nothing_left, children_of, plan, run, steady, turn};

/// A run, and the time that a hypervisor took meanwhile: perf's clock counts it as the
/// task's, the kernel's account does not.
fn run_with_steal(plan: &Plan) -> (Run, u64) {
    let before = CpuStat::read().expect("/proc/stat");
    let run = run(plan);
    let ticks = CpuStat::read().expect("/proc/stat").since(&before);
    let stolen: u64 = ticks.0.values().map(|ticks| ticks.steal).sum();
    // each CPU's count is cut to whole ticks, also where none is seen: 5.3 ms were stolen so
    (run, (stolen + ticks.0.len() as u64) * tick_ns())
}

/// Parts differ from the whole by less than `share` of it, and `more_ns`.
fn assert_sum(parts: impl IntoIterator<Item = u64>, whole: u64, share: f64, more_ns: u64) {
    let sum: u64 = parts.into_iter().sum();
    let bound = whole as f64 * share + more_ns as f64;
    assert!((sum.abs_diff(whole) as f64) < bound, "parts {sum}, whole {whole}, bound {bound}");
}

fn assert_cpus_whole(run: &Run) {
    assert_eq!(run.cpus.len() as u32, run.machine.cpus);
    for cpu in &run.cpus {
        let parts = [Some(cpu.idle), Some(cpu.irq), cpu.rt, cpu.fair, cpu.other];
        let sum: f64 = parts.iter().map(|part| part.expect("known with perf or reports")).sum();
        assert!((sum - 1.0).abs() < 0.01, "CPU {}: {sum}", cpu.cpu);
    }
}

#[test]
fn steady_tasks_do_their_steps_and_their_times_agree() {
    let _turn = turn();
    // more than a second each, of which a tick for each CPU is little
    const STEPS: u64 = 10 * SOME_STEPS;
    let tasks = || vec![steady(STEPS), steady(STEPS)];
    let (run, stolen_ns) = run_with_steal(&plan(vec![tasks(), tasks()]));
    assert!(!run.cut);
    assert_eq!(run.tasks.len(), 4);
    for task in &run.tasks {
        assert_eq!((task.steps, &task.cut), (STEPS, &None));
        assert!(task.cpu_ns > 0 && task.cpu_ns <= task.wall_ns + task.wall_ns / 20);
        assert!(task.begun_ns + task.wall_ns <= run.makespan_ns);
        let by_cpu = task.cpu_time_ns.as_ref().expect("known");
        assert_sum(by_cpu.values().copied(), task.cpu_ns, 0.01, stolen_ns);
        assert_eq!((task.calls_made, task.calls_seen.unwrap_or(0)), (0, 0));
    }
    assert_cpus_whole(&run);
    assert_eq!(run.groups.len(), 2);
    assert!(run.groups.iter().all(|group| group.finished == 2 && group.jain > 0.5));
    assert_nothing_left();
}

#[test]
fn the_timeline_covers_the_tasks_times() {
    let _turn = turn();
    let run = run(&plan(vec![vec![steady(SOME_STEPS), steady(SOME_STEPS), steady(SOME_STEPS)]]));
    assert!(run.timeline.is_sorted_by_key(|span| span.from_ns));
    for (index, task) in run.tasks.iter().enumerate() {
        let spans: Vec<_> =
            run.timeline.iter().filter(|span| span.task as usize == index).collect();
        assert!(spans.windows(2).all(|two| two[0].to_ns <= two[1].from_ns), "one CPU at a time");
        for (cpu, time_ns) in task.cpu_time_ns.as_ref().expect("known") {
            let there = spans.iter().filter(|span| span.cpu == *cpu);
            // both are perf's, but a switch is counted a little before it is recorded
            let each_ns = 20_000 * there.clone().count() as u64;
            assert_sum(there.map(|span| span.to_ns - span.from_ns), *time_ns, 0.01, each_ns);
        }
        let moves = spans.windows(2).filter(|two| two[0].cpu != two[1].cpu).count() as u64;
        // the kernel also counts moves of a task that did not run in between
        assert!(task.migrations.expect("known") >= moves);
    }
}

#[test]
fn a_bound_task_stays_on_its_cpu() {
    let _turn = turn();
    let bound = Task { cpus: Some(Cpus(BTreeSet::from([0]))), ..steady(SOME_STEPS) };
    let run = run(&plan(vec![vec![bound]]));
    let times = run.tasks[0].cpu_time_ns.as_ref().expect("known");
    assert_eq!(times.keys().copied().collect::<Vec<_>>(), [0]);
    let fair = run.cpus[0].fair.expect("known");
    assert!((fair - times[&0] as f64 / run.makespan_ns as f64).abs() < 0.01, "{fair}");
}

#[test]
fn sleeps_are_voluntary_switches_and_wake_ups() {
    let _turn = turn();
    let rhythm = Rhythm::Sleep { every_steps: SOME_STEPS / 10, sleep_us: 1000 };
    let phase = Phase { work_steps: SOME_STEPS, duration_us: None, rhythm, call: None };
    let run = run(&plan(vec![vec![Task { phases: vec![phase], ..steady(0) }]]));
    let task = &run.tasks[0];
    let wakeups = task.wakeup.expect("it slept");
    assert!((9..=10).contains(&wakeups.count), "{wakeups:?}");
    assert!(task.voluntary_switches >= wakeups.count);
    assert_eq!(task.calls_made, wakeups.count);
    assert_eq!(run.groups[0].wakeup.expect("merged").count, wakeups.count);
    if let Some(seen) = task.calls_seen {
        assert_eq!(seen, task.calls_made);
    }
}

/// Name, policy and nice of each task, as the kernel shows them (proc_pid_stat(5)).
fn policies_of_tasks() -> Vec<(String, u32, i32)> {
    let of = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(") ")?;
        let name = before.split_once('(')?.1.to_owned();
        // after the name comes the third field
        let field = |nth: usize| after.split(' ').nth(nth - 3);
        Some((name, field(41)?.parse().ok()?, field(19)?.parse().ok()?))
    };
    children_of(std::process::id()).into_iter().filter_map(of).collect()
}

#[test]
fn policies_are_set_where_permitted() {
    let _turn = turn();
    let fifo = Task { sched: Sched::Fifo { priority: 10 }, ..steady(SOME_STEPS) };
    let batch = Task { sched: Sched::Batch { nice: 5 }, ..steady(SOME_STEPS) };
    let ext = Task { sched: Sched::Ext { nice: 0 }, ..steady(SOME_STEPS) };
    let mut plan = plan(vec![vec![fifo], vec![batch], vec![ext]]);
    plan.limit_us = Some(1_500_000);
    let over = AtomicBool::new(false);
    let (run, seen) = std::thread::scope(|scope| {
        let observer = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !over.load(Relaxed) {
                seen.extend(policies_of_tasks());
                std::thread::sleep(Duration::from_millis(2));
            }
            seen
        });
        let run = run(&plan);
        over.store(true, Relaxed);
        (run, observer.join().expect("observer"))
    });
    let told = |group: &str| {
        run.missing.iter().any(|missing| missing.what == "sched" && missing.why.contains(group))
    };
    let rt: f64 = run.cpus.iter().filter_map(|cpu| cpu.rt).sum();
    // either it was a real-time task, or it is said why not
    assert_ne!(rt > 0.0, told("`g0`"), "{:?}", run.missing);
    assert!(!told("`g1`"), "{:?}", run.missing);
    // include/uapi/linux/sched.h: 1 FIFO, 3 BATCH, 7 EXT
    assert_eq!(seen.contains(&("g0.0".into(), 1, 0)), !told("`g0`"), "{seen:?}");
    assert!(seen.contains(&("g1.0".into(), 3, 5)), "{seen:?}");
    assert_eq!(seen.contains(&("g2.0".into(), 7, 0)), !told("`g2`"), "{seen:?}");
    assert_cpus_whole(&run);
    assert_nothing_left();
}

#[test]
fn cgroups_are_made_and_removed() {
    let _turn = turn();
    let placed = |path: &str, weight| {
        let cgroup = Some(Cgroup { path: path.into(), weight });
        Task { cgroup, ..steady(SOME_STEPS) }
    };
    let run = run(&plan(vec![
        vec![placed("low", Some(10))],
        vec![placed("deep/er", None)],
        vec![steady(SOME_STEPS)],
    ]));
    assert!(run.tasks.iter().all(|task| task.cut.is_none()));
    // the controller may be in v1, or nothing be permitted: then that is all that is told
    let told = run.missing.iter().filter(|missing| missing.what == "cgroup");
    for missing in told {
        let known = ["have no CPU controller", "cannot be made"];
        assert!(known.iter().any(|text| missing.why.contains(text)), "{}", missing.why);
    }
    assert_nothing_left();
}

/// A task that sleeps so often, and how often the runner's thread woke up meanwhile.
fn wakes_of_the_runner(sleeps: u64) -> u64 {
    let woke = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("own status");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.expect("own switches").trim().parse::<u64>().expect("a number")
    };
    let rhythm = Rhythm::Sleep { every_steps: 1000, sleep_us: 100 };
    let phase = Phase { work_steps: sleeps * 1000, duration_us: None, rhythm, call: None };
    let before = woke();
    let run = run(&plan(vec![vec![Task { phases: vec![phase], ..steady(0) }]]));
    assert!(run.timeline.len() as u64 >= sleeps / 2);
    woke() - before
}

#[test]
fn the_runner_sleeps_whatever_the_tasks_do() {
    let _turn = turn();
    let few = wakes_of_the_runner(10);
    let many = wakes_of_the_runner(2000);
    assert!(many < few + 500, "{few} with 10 sleeps, {many} with 2000");
}
