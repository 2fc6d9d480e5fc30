// SPDX-License-Identifier: GPL-2.0-only
//! What the tasks of a plan do, in words.

use crate::outlets::units::ns;
use crate::plan::{Phase, Plan, Rhythm, Task};
use crate::scene::Sched;

/// A line for each group: `13 × normal: NORMAL, any CPU: 85.3 s of computing`.
#[must_use]
pub fn groups(plan: &Plan) -> Vec<String> {
    let of = |index: usize| plan.tasks.iter().filter(move |task| task.group == index);
    let line = |(index, name): (usize, &String)| {
        let first = of(index).next()?; // but for start and seed they are equal
        let count = of(index).count();
        Some(format!("{count} × {name}: {}", task(plan, first)))
    };
    plan.groups.iter().enumerate().filter_map(line).collect()
}

fn task(plan: &Plan, task: &Task) -> String {
    let mut words = vec![policy(task.sched)];
    words.push(match &task.cpus {
        Some(cpus) => format!("CPUs {cpus}"),
        None => "any CPU".into(),
    });
    if let Some(cgroup) = &task.cgroup {
        words.push(format!("in cgroup {}", cgroup.path));
    }
    if task.start_us > 0 {
        words.push(format!("begins after {}", us(task.start_us)));
    }
    if task.memory_kb > 0 {
        words.push(format!("walks through {} KiB", task.memory_kb));
    }
    if task.jitter_pct > 0 {
        words.push(format!("varies by {} %", task.jitter_pct));
    }
    match (task.takes.len(), task.posts.len()) {
        (0, 0) => {}
        (takes, 0) => words.push(format!("takes from {takes}")),
        (0, posts) => words.push(format!("gives to {posts}")),
        (takes, posts) => words.push(format!("takes from {takes}, gives to {posts}")),
    }
    let phases: Vec<String> = task.phases.iter().map(|p| phase(plan, p)).collect();
    format!("{}: {}", words.join(", "), phases.join("; then "))
}

fn policy(sched: Sched) -> String {
    let with_nice = |name: &str, nice| match nice {
        0 => name.to_owned(),
        nice => format!("{name} nice {nice}"),
    };
    match sched {
        Sched::Normal { nice } => with_nice("NORMAL", nice),
        Sched::Batch { nice } => with_nice("BATCH", nice),
        Sched::Ext { nice } => with_nice("EXT", nice),
        Sched::Idle => "IDLE".into(),
        Sched::Fifo { priority } => format!("FIFO {priority}"),
        Sched::Rr { priority } => format!("RR {priority}"),
        Sched::Deadline { runtime_us, deadline_us, period_us } => {
            format!("DEADLINE {} in {} of {}", us(runtime_us), us(deadline_us), us(period_us))
        }
    }
}

fn phase(plan: &Plan, phase: &Phase) -> String {
    let time = |steps: u64| ns((steps as f64 / plan.scale.steps_per_us * 1e3) as u64);
    let in_all = (phase.work_steps != u64::MAX).then(|| time(phase.work_steps));
    let computing = in_all.as_ref().map_or("computing".into(), |all| format!("computing {all}"));
    let mut words = match phase.rhythm {
        Rhythm::Steady => computing,
        Rhythm::Sleep { every_steps, sleep_us } => {
            format!("{computing}, sleeping {} after each {}", us(sleep_us), time(every_steps))
        }
        Rhythm::Periodic { period_us, burst_steps, deadline_us } => {
            let due = match deadline_us == period_us {
                true => String::new(),
                false => format!(" within {}", us(deadline_us)),
            };
            format!("computing {}{due} every {}", time(burst_steps), us(period_us))
        }
        Rhythm::Items { burst_steps } => format!("computing {} for each item", time(burst_steps)),
    };
    if let (Rhythm::Periodic { .. } | Rhythm::Items { .. }, Some(all)) = (phase.rhythm, in_all) {
        words += &format!(", {all} in all");
    }
    if let Some(call) = phase.call {
        words += &format!(", {} after each {}", call.kind.name(), time(call.every_steps));
    }
    if let Some(duration_us) = phase.duration_us {
        words += &format!(", for {} at most", us(duration_us));
    }
    words
}

fn us(value_us: u64) -> String {
    ns(value_us.saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::{Call, Scale};
    use crate::scene::{CallKind, Cpus};

    fn line(task: Task) -> String {
        let plan = Plan {
            scene: "s".into(),
            why: String::new(),
            good: String::new(),
            scale: Scale { steps_per_us: 100.0, steps_per_loop: 4096.0, work: 1.0 },
            limit_us: None,
            rt_cpus: None,
            groups: vec!["g".into()],
            tasks: vec![task.clone(), task],
            links: Vec::new(),
        };
        groups(&plan).join("\n").replace('\u{a0}', " ")
    }

    fn task(work_steps: u64, rhythm: Rhythm) -> Task {
        Task {
            sched: Sched::Normal { nice: 5 },
            phases: vec![Phase { work_steps, duration_us: None, rhythm, call: None }],
            ..Task::default()
        }
    }

    #[test]
    fn each_rhythm_has_its_words() {
        let sleep = Rhythm::Sleep { every_steps: 100_000, sleep_us: 500 };
        assert_eq!(
            line(task(1_000_000, sleep)),
            "2 × g: NORMAL nice 5, any CPU: computing 10.0 ms, sleeping 500 µs after each 1.00 ms"
        );
        let periodic =
            Rhythm::Periodic { period_us: 10_000, burst_steps: 200_000, deadline_us: 5_000 };
        assert_eq!(
            line(task(1_000_000, periodic)),
            "2 × g: NORMAL nice 5, any CPU: computing 2.00 ms within 5.00 ms every 10.0 ms, \
             10.0 ms in all"
        );
        let mut consumer = task(u64::MAX, Rhythm::Items { burst_steps: 100 });
        consumer.takes = vec![0, 1];
        assert_eq!(
            line(consumer),
            "2 × g: NORMAL nice 5, any CPU, takes from 2: computing 1.00 µs for each item"
        );
    }

    #[test]
    fn what_is_unusual_is_told() {
        let mut odd = task(u64::MAX, Rhythm::Steady);
        odd.sched = Sched::Deadline { runtime_us: 1000, deadline_us: 2000, period_us: 4000 };
        odd.cpus = Some(Cpus(BTreeSet::from([1, 2])));
        (odd.start_us, odd.memory_kb, odd.jitter_pct) = (3_000_000, 64, 10);
        odd.phases[0].call = Some(Call { kind: CallKind::Stat, every_steps: 100_000 });
        odd.phases.push(Phase {
            duration_us: Some(2_000_000),
            ..task(u64::MAX, Rhythm::Steady).phases[0]
        });
        assert_eq!(
            line(odd),
            "2 × g: DEADLINE 1.00 ms in 2.00 ms of 4.00 ms, CPUs 1-2, begins after 3.00 s, walks \
             through 64 KiB, varies by 10 %: computing, stat after each 1.00 ms; then computing, \
             for 2.00 s at most"
        );
    }
}
