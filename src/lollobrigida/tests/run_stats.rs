// SPDX-License-Identifier: GPL-2.0-only
//! Figures over several tasks, against values computed by hand.

use lollobrigida::measure::groups::groups;
use lollobrigida::measure::stats::{jain, summary};
use lollobrigida::plan::{Plan, Scale};
use lollobrigida::result::{Summary, Task};
use proptest::prelude::*;

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} is not {b}");
}

#[test]
fn deviation_is_that_of_a_sample() {
    let seen = summary(&[2, 4, 4, 4, 5, 5, 7, 9]);
    near(seen.mean_ns, 5.0);
    // squares of the differences: 9 1 1 1 0 0 4 16 = 32, by 7
    near(seen.stdev_ns, (32.0_f64 / 7.0).sqrt());
    assert_eq!((seen.min_ns, seen.max_ns), (2, 9));
    assert_eq!(summary(&[7]), Summary { mean_ns: 7.0, stdev_ns: 0.0, min_ns: 7, max_ns: 7 });
    assert_eq!(summary(&[]), Summary::default());
}

#[test]
fn fairness_of_known_cases() {
    near(jain(&[5.0, 5.0, 5.0]), 1.0);
    near(jain(&[1.0, 0.0, 0.0, 0.0]), 0.25);
    // (1+2+3)² / (3 · 14)
    near(jain(&[1.0, 2.0, 3.0]), 36.0 / 42.0);
    near(jain(&[0.0, 0.0]), 1.0);
    near(jain(&[]), 0.0);
    // no overflow on the way
    near(jain(&[1e300, 1e300]), 1.0);
}

proptest! {
    #[test]
    fn fairness_is_between_one_nth_and_one(values in prop::collection::vec(0.0..1e12_f64, 1..40)) {
        let n = values.len() as f64;
        let index = jain(&values);
        prop_assert!(index >= 1.0 / n - 1e-9 && index <= 1.0 + 1e-9, "{}", index);
    }

    #[test]
    fn the_mean_is_between_least_and_greatest(values in prop::collection::vec(any::<u32>(), 1..40)) {
        let values: Vec<u64> = values.into_iter().map(u64::from).collect();
        let seen = summary(&values);
        prop_assert!(seen.min_ns as f64 <= seen.mean_ns + 1e-6);
        prop_assert!(seen.mean_ns <= seen.max_ns as f64 + 1e-6);
        prop_assert!(seen.stdev_ns <= (seen.max_ns - seen.min_ns) as f64 + 1e-6);
    }
}

#[test]
fn a_group_is_judged_by_its_tasks_that_finished() {
    let plan = Plan {
        scene: "s".into(),
        why: String::new(),
        good: String::new(),
        scale: Scale { steps_per_us: 500.0, steps_per_loop: 4096.0, work: 1.0 },
        limit_us: None,
        rt_cpus: None,
        groups: vec!["a".into(), "b".into()],
        tasks: vec![],
        links: vec![],
    };
    let task = |group, wall_ns, steps, cut: Option<&str>| Task {
        group,
        wall_ns,
        steps,
        cpu_ns: wall_ns / 2,
        periods: 10,
        misses: 2,
        cut: cut.map(str::to_owned),
        ..Task::default()
    };
    let tasks = [
        task(0, 100, 1000, None),
        task(1, 70, 10, None),
        task(0, 300, 1000, None),
        task(0, 900, 5, Some("killed")),
    ];
    let groups = groups(&plan, &tasks, &[None, None, None, None]);
    let a = &groups[0];
    assert_eq!((a.name.as_str(), a.finished, a.count), ("a", 2, 3));
    near(a.wall.mean_ns, 200.0);
    near(a.wall.stdev_ns, 20000.0_f64.sqrt());
    near(a.cpu.mean_ns, 100.0);
    // speeds 10 and 10/3: (4/3)² / (2 · 10/9)
    near(a.jain, 0.8);
    assert_eq!((a.periods, a.misses), (30, 6));
    assert_eq!((groups[1].finished, groups[1].wall.max_ns), (1, 70));
}
