// SPDX-License-Identifier: GPL-2.0-only
//! From scenes to plans: the same plan each time, links as documented, clear refusals.

use crate::help::*;
use lollobrigida::plan::{self, Plan, Right, Scale, expect};
use lollobrigida::scene::{Amount, CallKind, Cgroup, Cpus, Group, Phase, Rhythm, Scene, Sched};
use proptest::prelude::*;

fn cpus(list: &[u32]) -> Cpus {
    Cpus(list.iter().copied().collect())
}

fn refusal(groups: Vec<Group>) -> String {
    let made = plan::build(&scene(groups), &SCALE, &cpus(&[0, 1]));
    format!("{:#}", made.unwrap_err())
}

fn follower(name: &str, count: u32, follows: &[&str]) -> Group {
    let follows = follows.iter().map(|f| (*f).to_owned()).collect();
    let items = Rhythm::Items { burst: Amount::Loops(2.0) };
    Group { count, follows, ..group(name, endless(items)) }
}

fn steady(name: &str, count: u32) -> Group {
    Group { count, ..group(name, phase(1.0, Rhythm::Steady)) }
}

fn ends(plan: &Plan) -> Vec<(usize, usize)> {
    plan.links.iter().map(|l| (l.from, l.to)).collect()
}

proptest! {
    #[test]
    fn the_same_scene_gives_the_same_plan(
        seed: u64, spread_us in 0..1_000_000_u64, start_us in 0..1000_u64, count in 1..20_u32,
        loops in 0.001..1e9_f64, work in 0.01..10.0_f64,
    ) {
        let mixed = Group { count, spread_us, start_us, ..group("a", phase(loops, Rhythm::Steady)) };
        let scene = Scene { seed, ..scene(vec![mixed, follower("b", 3, &["a"])]) };
        let scale = Scale { work, ..SCALE };
        let make = || plan::build(&scene, &scale, &cpus(&[0, 1])).unwrap();
        let plan = make();
        prop_assert_eq!(&plan, &make());
        let text = serde_json::to_string(&plan).unwrap();
        let read: Plan = serde_json::from_str(&text).unwrap();
        prop_assert_eq!((&read.tasks, &read.links), (&plan.tasks, &plan.links));
        let of_a = &plan.tasks[..count as usize];
        let bounds = start_us..start_us + spread_us.max(1);
        prop_assert!(of_a.iter().all(|t| bounds.contains(&t.start_us)));
        prop_assert!(of_a.iter().all(|t| t.phases[0].work_steps == ((loops * 4096.0 * work).round() as u64).max(1)));
        // what one task draws does not depend on the others
        let mut seeds: Vec<u64> = plan.tasks.iter().map(|t| t.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        prop_assert_eq!(seeds.len(), plan.tasks.len());
    }

    #[test]
    fn every_task_of_a_pipeline_has_a_neighbour(n in 1..12_u32, m in 1..12_u32) {
        let plan = build(vec![steady("a", n), follower("b", m, &["a"])]);
        prop_assert_eq!(plan.links.len() as u32, n.max(m));
        prop_assert!(plan.tasks.iter().all(|t| !t.takes.is_empty() || !t.posts.is_empty()));
        let widths = |of: fn(&plan::Task) -> usize| plan.tasks.iter().map(of).filter(|w| *w > 0)
            .fold((usize::MAX, 0), |(low, high), w| (low.min(w), high.max(w)));
        let (low, high) = widths(|t| t.takes.len().max(t.posts.len()));
        prop_assert!(high - low <= 1 || n.min(m) == n.max(m) || high <= (n.max(m) as usize).div_ceil(n.min(m) as usize));
    }
}

#[test]
fn seeds_differ_with_the_scene_s() {
    let make = |seed| {
        let groups = vec![Group { spread_us: 1_000_000, ..steady("a", 1) }];
        plan::build(&Scene { seed, ..scene(groups) }, &SCALE, &cpus(&[0])).unwrap()
    };
    assert_ne!(make(1).tasks[0].seed, make(2).tasks[0].seed);
    assert_ne!(make(1).tasks[0].start_us, make(2).tasks[0].start_us);
}

#[test]
fn links_join_as_documented() {
    assert_eq!(
        ends(&build(vec![steady("a", 5), follower("b", 2, &["a"])])),
        [(0, 5), (1, 5), (2, 5), (3, 6), (4, 6)]
    );
    assert_eq!(
        ends(&build(vec![steady("a", 2), follower("b", 5, &["a"])])),
        [(0, 2), (0, 3), (0, 4), (1, 5), (1, 6)]
    );
    let plan = build(vec![follower("late", 1, &["a", "b"]), steady("a", 1), steady("b", 1)]);
    assert_eq!(ends(&plan), [(1, 0), (2, 0)]);
    assert_eq!((&plan.tasks[0].takes[..], &plan.tasks[2].posts[..]), (&[0, 1][..], &[1][..]));
}

#[test]
fn wide_masks_are_no_affinity_and_absent_cpus_are_left_out() {
    let on = |list: &[u32]| Group { cpus: Some(cpus(list)), ..steady("a", 1) };
    let of = |list: &[u32]| build(vec![on(list)]).tasks[0].cpus.clone();
    assert_eq!(of(&[0, 1, 2, 15]), None);
    assert_eq!(of(&[1, 7]), Some(cpus(&[1])));
    let why = refusal(vec![on(&[2, 3])]);
    assert!(
        why.contains("group a") && why.contains("CPUs 2-3") && why.contains("CPUs 0-1"),
        "{why}"
    );
}

#[test]
fn what_cannot_run_is_refused_with_its_group_and_a_way_out() {
    let endless_scene =
        Scene { limit_ms: None, ..scene(vec![group("a", endless(Rhythm::Steady))]) };
    let why = plan::build(&endless_scene, &SCALE, &cpus(&[0])).unwrap_err();
    assert!(format!("{why:#}").contains("group a: phase 1: has neither work nor duration"));
    for (groups, word) in [
        (vec![], "no group"),
        (vec![follower("a", 1, &[])], "follows no group"),
        (vec![follower("a", 1, &["b"])], "follows b, which no group is called"),
        (vec![follower("a", 1, &["b"]), follower("b", 1, &["a"])], "a, b wait for each other"),
        (
            vec![Group { follows: vec!["b".into()], ..steady("a", 1) }, steady("b", 1)],
            "no phase that takes",
        ),
        (
            vec![Group {
                sched: Sched::Deadline { runtime_us: 1, deadline_us: 2, period_us: 3 },
                ..group("a", calling(CallKind::Fork, 1))
            }],
            "refuses to DEADLINE tasks",
        ),
        (vec![Group { phases: vec![], ..steady("a", 1) }], "no phase"),
        (vec![Group { jitter_pct: 101, ..steady("a", 1) }], "101 %"),
        (vec![group("a", phase(0.0, Rhythm::Steady))], "no amount of computing"),
        (vec![group("a", phase(f64::NAN, Rhythm::Steady))], "no amount of computing"),
        (
            vec![Group { item_kb: u32::MAX, ..follower("a", 1, &["b"]) }, steady("b", 1)],
            "more than can be",
        ),
    ] {
        let why = refusal(groups);
        assert!(why.contains(word), "{word}: {why}");
    }
}

#[test]
fn the_scale_s_work_stretches_work_and_duration_only() {
    let phase = Phase {
        duration_ms: Some(7),
        ..phase(10.0, Rhythm::Periodic { period_us: 10, burst: Amount::Us(2.0), deadline_us: 10 })
    };
    let scale = Scale { steps_per_loop: 100.0, work: 3.0, ..SCALE };
    let plan = plan::build(&scene(vec![group("a", phase)]), &scale, &cpus(&[0])).unwrap();
    let made = plan.tasks[0].phases[0];
    assert_eq!((made.work_steps, made.duration_us), (3000, Some(21_000)));
    let rhythm = plan::Rhythm::Periodic { period_us: 10, burst_steps: 1000, deadline_us: 10 };
    assert_eq!(made.rhythm, rhythm);
}

#[test]
fn durations_are_estimated_from_steps_sleeps_periods_and_crowds() {
    let us = |us: f64, rhythm| Phase { work: Some(Amount::Us(us)), ..endless(rhythm) };
    let duration = |groups| expect(&build(groups), 2).duration_us;
    let near = |told: f64, real: f64| assert!((told - real).abs() < 1.0, "{told} for {real}");
    near(duration(vec![group("a", us(1000.0, Rhythm::Steady))]), 1000.0);
    let four = |cpus| Group { count: 4, cpus, ..group("a", us(1000.0, Rhythm::Steady)) };
    near(duration(vec![four(None)]), 2000.0);
    near(duration(vec![four(Some(cpus(&[1])))]), 4000.0);
    // a narrow set's tasks load the wider one, not the other way round
    let on = |name, list: &[u32]| Group {
        count: 3,
        cpus: Some(cpus(list)),
        ..group(name, us(1000.0, Rhythm::Steady))
    };
    let wide =
        plan::build(&scene(vec![on("a", &[1]), on("b", &[1, 2])]), &SCALE, &cpus(&[0, 1, 2, 3]));
    near(expect(&wide.unwrap(), 4).duration_us, 3000.0);
    let sleep = Rhythm::Sleep { every: Amount::Us(100.0), sleep_us: 400 };
    near(duration(vec![group("a", us(1000.0, sleep))]), 1000.0 + 9.0 * 400.0);
    let period = Rhythm::Periodic { period_us: 500, burst: Amount::Us(100.0), deadline_us: 500 };
    near(duration(vec![group("a", us(1000.0, period))]), 9.0 * 500.0 + 100.0);
    near(duration(vec![Group { start_us: 70, ..group("a", us(30.0, Rhythm::Steady)) }]), 100.0);
    let timed = Phase { duration_ms: Some(5), ..endless(sleep) };
    let told = expect(&build(vec![group("a", timed)]), 2);
    near(told.duration_us, 5000.0);
    near(told.cpu_us, 1000.0);
    let told = expect(&build(vec![group("a", endless(Rhythm::Steady))]), 2);
    near(told.duration_us, 60e6);
    assert!(told.limited);
    // ten items of 16.384 µs each by the slower follower
    let told = expect(&build(vec![group("a", us(1000.0, sleep)), follower("b", 1, &["a"])]), 2);
    near(told.cpu_us, 1000.0 + 10.0 * 2.0 * 4096.0 / 500.0);
    near(told.duration_us, 4600.0);
}

#[test]
fn needs_name_the_right_and_what_for() {
    let with = |name: &str, sched| Group { sched, ..steady(name, 3) };
    let boxed = Cgroup { path: "low".into(), weight: Some(10) };
    let plan = build(vec![
        with("plain", Sched::Normal { nice: 5 }),
        with("eager", Sched::Batch { nice: -5 }),
        with("rt", Sched::Fifo { priority: 50 }),
        Group { cgroup: Some(boxed), ..with("ext", Sched::Ext { nice: 0 }) },
    ]);
    let needs = expect(&plan, 2).needs;
    let told: Vec<_> = needs.iter().map(|n| (n.group.as_str(), n.right)).collect();
    assert_eq!(
        told,
        [
            ("eager", Right::SysNice),
            ("rt", Right::SysNice),
            ("ext", Right::SchedExt),
            ("ext", Right::CgroupWrite)
        ]
    );
    assert!(needs[1].why.contains("priority 50") && needs[0].why.contains("RLIMIT_NICE of 25"));
}
