// SPDX-License-Identifier: GPL-2.0-only
//! Comparisons against figures computed by hand, and properties that hold for all of them.
use crate::fixtures;
use lollobrigida::result::comparison::{Comparison, Figure, compare};
use lollobrigida::result::figures::Better;
use lollobrigida::result::{Run, Task, Warning};
use proptest::prelude::*;

/// Runs with these makespans, one list for each scheduler.
fn makespans(of: &[&[u64]]) -> Comparison {
    let run = |ns: &u64| Run { makespan_ns: *ns, ..fixtures::bare("x", None) };
    let unders = (0..of.len()).map(|i| format!("s{i}")).collect();
    compare(unders, of.iter().map(|runs| runs.iter().map(run).collect()).collect())
}

fn figure<'a>(comparison: &'a Comparison, name: &str, group: Option<&str>) -> &'a Figure {
    let found = comparison.figures.iter().find(|f| f.name == name && f.group.as_deref() == group);
    found.unwrap_or_else(|| panic!("no figure {name} of {group:?}"))
}

#[track_caller]
fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * b.abs().max(1e-9), "{a} is not {b}");
}

#[test]
fn ratio_and_spread_as_computed_by_hand() {
    let comparison = makespans(&[&[100, 110, 90], &[50, 66, 40]]);
    let f = figure(&comparison, "makespan", None);
    assert_eq!(f.mean, [Some(100.0), Some(52.0)]);
    near(f.stdev[0].unwrap(), 10.0);
    near(f.stdev[1].unwrap(), 172f64.sqrt()); // ((-2)² + 14² + (-12)²) / 2
    let r = f.ratio[1].unwrap();
    near(r.of_means, 0.52);
    // e = s/√3: e₁/m₁ = √(172/3)/52, e₀/m₀ = (10/√3)/100.
    near(r.spread.unwrap(), 0.52 * (172.0 / 3.0 / 2704.0 + 100.0 / 3.0 / 10_000.0f64).sqrt());
    near(r.low.unwrap(), 40.0 / 90.0);
    near(r.high.unwrap(), 66.0 / 110.0);
}

#[test]
fn one_run_has_a_ratio_but_no_spread() {
    let comparison = makespans(&[&[200], &[100]]);
    let f = figure(&comparison, "makespan", None);
    let r = f.ratio[1].unwrap();
    assert_eq!((r.of_means, r.spread, r.low, r.high), (0.5, None, Some(0.5), Some(0.5)));
    assert_eq!(f.stdev, [None, None]);
}

#[test]
fn no_ratio_to_nothing() {
    let f = |c: &Comparison| figure(c, "makespan", None).clone();
    assert_eq!(f(&makespans(&[&[0, 0], &[5, 5]])).ratio, [None, None]);
    let empty_first = f(&makespans(&[&[], &[5, 5]]));
    assert_eq!((empty_first.mean[0], empty_first.ratio[1]), (None, None));
    // Pairs whose denominator is 0 are left out of the span, not made infinite.
    let r = f(&makespans(&[&[0, 10], &[5, 5]])).ratio[1].unwrap();
    assert_eq!((r.of_means, r.low, r.high), (1.0, Some(0.5), Some(0.5)));
    assert!(compare(Vec::new(), Vec::new()).figures.is_empty());
}

#[test]
fn figures_come_from_their_fields() {
    let mut run = fixtures::bare("x", None);
    run.energy_uj = Some(7);
    run.cpus = fixtures::default_run(0).cpus[..2].to_vec();
    (run.cpus[0].idle, run.cpus[1].idle) = (0.25, 0.75);
    let mut group = fixtures::default_run(0).groups[0].clone();
    (group.wall.mean_ns, group.wall.stdev_ns, group.cpu.mean_ns, group.jain) = (4.0, 1.0, 3.0, 0.5);
    (group.periods, group.misses) = (8, 2);
    let wakeup = group.wakeup.as_mut().unwrap();
    (wakeup.p50_ns, wakeup.p99_ns, wakeup.max_ns) = (10, 20, 30);
    group.item_age = group.wakeup;
    let age = group.item_age.as_mut().unwrap();
    (age.mean_ns, age.stdev_ns, age.p99_ns) = (11.0, 12.0, 13);
    run.groups = vec![group];
    let task = |steps, causes: &[u64]| Task {
        wall_ns: 1000,
        steps,
        migrations: Some(3),
        evictions: Some(causes.iter().map(|n| (format!("{n}"), *n)).collect()),
        ..Task::default()
    };
    run.tasks = vec![task(100, &[1, 2]), task(300, &[4])];
    let name = run.groups[0].name.clone();
    let comparison = compare(vec!["a".into()], vec![vec![run]]);
    let of = |n: &str| figure(&comparison, n, None).mean[0].unwrap();
    assert_eq!((of("idle"), of("migrations"), of("evictions"), of("energy")), (0.5, 6.0, 7.0, 7.0));
    let of = |n: &str| figure(&comparison, n, Some(&name)).mean[0].unwrap();
    assert_eq!(["wall_mean", "wall_stdev", "cpu_mean", "jain"].map(of), [4.0, 1.0, 3.0, 0.5]);
    assert_eq!(["wakeup_p50", "wakeup_p99", "wakeup_max"].map(of), [10.0, 20.0, 30.0]);
    assert_eq!(["item_age_mean", "item_age_stdev", "item_age_p99"].map(of), [11.0, 12.0, 13.0]);
    assert_eq!(["misses", "speed"].map(of), [0.25, 200.0]);
}

#[test]
fn absent_figures_are_left_out_or_have_no_value() {
    let comparison = compare(
        vec!["default".into(), "scx_artis".into()],
        vec![vec![fixtures::default_run(0)], vec![fixtures::artis_run(0)]],
    );
    assert!(!comparison.figures.iter().any(|f| f.name == "energy" || f.name == "item_age_mean"));
    let evictions = figure(&comparison, "evictions", None);
    assert_eq!(evictions.mean[0], None);
    assert!(evictions.mean[1].unwrap() > 0.0);
    assert_eq!(evictions.ratio, [None, None]);
    assert_eq!(comparison.missing.len(), 2, "each reason once");
    assert_eq!(comparison.warnings.len(), 1, "each warning once: {:?}", comparison.warnings);
}

#[test]
fn a_group_in_which_nobody_finished_has_no_times() {
    let mut run = fixtures::default_run(0);
    run.groups[1].finished = 0;
    let comparison = compare(vec!["a".into()], vec![vec![run]]);
    let of_group =
        |f: &&Figure| f.group.as_deref() == Some("compute") && f.name.starts_with("wall");
    assert_eq!(comparison.figures.iter().filter(of_group).count(), 0);
}

#[test]
fn cut_unlike_and_noisy_runs_are_warned_of() {
    let mut runs = vec![
        vec![fixtures::default_run(0), fixtures::default_run(0)],
        vec![fixtures::artis_run(0), fixtures::artis_run(0)],
    ];
    runs[0][1].cut = true;
    runs[1][0].machine.kernel = "6.12".into();
    runs[1][1].makespan_ns *= 2;
    let comparison = compare(vec!["default".into(), "scx_artis".into()], runs);
    let text = |code: &str| {
        let found: Vec<&str> =
            comparison.warnings.iter().filter(|w| w.code == code).map(|w| &*w.text).collect();
        assert_eq!(found.len(), 1, "{code}: {:?}", comparison.warnings);
        found[0]
    };
    assert!(text("cut").starts_with("1 of 2 runs under default"));
    assert!(text("unlike").contains("6.12") && text("unlike").contains("6.18.2"));
    assert!(text("spread").contains("under scx_artis"));
}

#[test]
fn warnings_that_differ_by_numbers_are_one() {
    let run = |code: &str, text: &str| {
        let mut run = fixtures::default_run(0);
        run.warnings = vec![Warning { code: code.into(), text: text.into() }];
        run
    };
    let runs = [("a", "98 % of 2"), ("a", "100 % of 2"), ("b", "98 % of 2"), ("a", "98 % of 2")];
    let runs = runs.iter().map(|(code, text)| run(code, text)).collect();
    let told = compare(vec!["x".into()], vec![runs]).warnings;
    let told: Vec<(&str, &str)> = told.iter().map(|w| (&*w.code, &*w.text)).collect();
    assert_eq!(told, [("a", "98 % of 2 (and 1 more with other numbers)"), ("b", "98 % of 2")]);
}

#[test]
fn best_is_told_apart_from_noise() {
    let best = |of: &[&[u64]]| figure(&makespans(of), "makespan", None).best();
    assert_eq!(best(&[&[100, 102, 98], &[50, 51, 49], &[70, 71, 69]]), [1]);
    // 50 and 51 with errors of 1/√3·2: not told apart, but both apart from 100.
    assert_eq!(best(&[&[100, 102, 98], &[50, 52, 48], &[51, 53, 49]]), [1, 2]);
    assert_eq!(best(&[&[100, 102, 98], &[101, 103, 99]]), [0; 0], "nobody is best");
    assert_eq!(best(&[&[100], &[99]]), [1], "single runs have no spread to hide in");
    assert_eq!(best(&[&[100]]), [0; 0], "nothing to choose from");
    let mut more = figure(&makespans(&[&[1, 1], &[2, 2]]), "makespan", None).clone();
    more.better = Better::More;
    assert_eq!(more.best(), [1]);
    more.better = Better::Neither;
    assert_eq!(more.best(), [0; 0]);
}

proptest! {
    #[test]
    fn ratio_to_itself_is_one(runs in prop::collection::vec(1u64..1_000_000_000, 1..6)) {
        let f = figure(&makespans(&[&runs, &runs]), "makespan", None).clone();
        for ratio in f.ratio.iter().flatten() {
            prop_assert_eq!((ratio.of_means, ratio.low, ratio.high), (1.0, Some(1.0), Some(1.0)));
        }
        prop_assert_eq!(f.ratio.len(), 2);
    }

    #[test]
    fn ratios_do_not_know_the_unit(
        a in prop::collection::vec(1u64..1_000_000, 2..6),
        b in prop::collection::vec(1u64..1_000_000, 2..6),
        by in 2u64..1000,
    ) {
        let times = |of: &[u64]| of.iter().map(|ns| ns * by).collect::<Vec<_>>();
        let plain = figure(&makespans(&[&a, &b]), "makespan", None).ratio[1].unwrap();
        let scaled = figure(&makespans(&[&times(&a), &times(&b)]), "makespan", None).ratio[1].unwrap();
        for (x, y) in [
            (plain.of_means, scaled.of_means),
            (plain.spread.unwrap(), scaled.spread.unwrap()),
            (plain.low.unwrap(), scaled.low.unwrap()),
            (plain.high.unwrap(), scaled.high.unwrap()),
        ] {
            prop_assert!((x - y).abs() <= 1e-9 * x.abs().max(1e-9), "{} is not {}", x, y);
        }
    }

    #[test]
    fn paired_ratios_enclose_the_ratio_of_means(
        pairs in prop::collection::vec((1u64..1_000_000, 1u64..1_000_000), 1..6),
    ) {
        let (a, b): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let r = figure(&makespans(&[&a, &b]), "makespan", None).ratio[1].unwrap();
        prop_assert!(r.low.unwrap() <= r.of_means * (1.0 + 1e-12));
        prop_assert!(r.high.unwrap() >= r.of_means * (1.0 - 1e-12));
    }
}
