// SPDX-License-Identifier: GPL-2.0-only
//! The scenes that the program carries keep what their directory promises.

use std::collections::BTreeSet;
use std::path::Path;

use lollobrigida::scene::{Cpus, Phase, Rhythm, Scene, Sched, find, read, render, shipped};

/// CPUs of the machine that the scenes are made for.
const CPUS: u32 = 4;

/// All but annex B's file, which is as it was printed.
fn scenes() -> Vec<Scene> {
    let names = shipped().map(|(name, _)| name).filter(|name| *name != "annexb");
    names.map(|name| find(name).unwrap_or_else(|e| panic!("{e}"))).collect()
}

#[test]
fn the_program_carries_what_the_directory_has() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let there: BTreeSet<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .inspect(|path| assert!(read(path).is_ok(), "{path:?}"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let carried: BTreeSet<String> = shipped().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(carried, there);
    assert_eq!(shipped().count(), carried.len(), "two scenes of one name");
}

#[test]
fn each_scene_the_issue_asks_for_is_there() {
    let asked = [
        "annexb",
        "annexb-0",
        "annexb-25",
        "annexb-50",
        "annexb-75",
        "annexb-90",
        "two-cpu",
        "equity",
        "efficiency",
        "locality",
        "ping-pong",
        "wake-storm",
        "foreign-spinner",
        "fifo-hog",
        "audio-graph",
        "ros2-control",
        "mixer",
        "page-faults",
        "mixed",
    ];
    let carried: Vec<_> = shipped().map(|(name, _)| name).collect();
    for name in asked {
        assert!(carried.contains(&name), "{name} is not among {carried:?}");
    }
}

#[test]
fn each_says_why_and_what_is_good_in_figures() {
    for scene in scenes() {
        assert!(scene.why.contains('?'), "{}: why asks nothing: {}", scene.name, scene.why);
        let figure = scene.good.contains(|c: char| c.is_ascii_digit());
        assert!(figure, "{}: no figure in {}", scene.name, scene.good);
        assert!(scene.rt_cpus.is_some(), "{}: for which RT CPUs?", scene.name);
    }
}

#[test]
fn none_leaves_the_cpus_it_is_made_for() {
    for scene in scenes() {
        for group in &scene.groups {
            let cpus = group.cpus.as_ref().unwrap_or_else(|| panic!("{}: any CPU", scene.name));
            assert!(cpus.0.iter().all(|cpu| *cpu < CPUS), "{}: {cpus}", scene.name);
        }
    }
}

/// Scaled down, a scene must get shorter: nothing may run until the limit.
#[test]
fn each_ends_by_its_work() {
    let ends = |phase: &Phase| {
        let items = matches!(phase.rhythm, Rhythm::Items { .. });
        phase.work.is_some() || phase.duration_ms.is_some() || items
    };
    for scene in scenes() {
        assert!(scene.limit_ms.is_some_and(|ms| ms <= 60_000), "{}", scene.name);
        let mut phases = scene.groups.iter().flat_map(|g| &g.phases);
        assert!(phases.all(ends), "{} has a phase without an end", scene.name);
    }
}

/// Real-time tasks that do not sleep of themselves could take the machine.
#[test]
fn none_takes_all_cpus() {
    for scene in scenes() {
        let mut hogged = BTreeSet::new();
        for group in &scene.groups {
            let rt = matches!(group.sched, Sched::Fifo { .. } | Sched::Rr { .. });
            for phase in group.phases.iter().filter(|p| rt && p.rhythm == Rhythm::Steady) {
                assert!(phase.duration_ms.is_some(), "{}: a hog without an end", scene.name);
                hogged.extend(group.cpus.clone().unwrap_or(Cpus((0..CPUS).collect())).0);
            }
        }
        assert!(hogged.len() < CPUS as usize, "{} hogs {hogged:?}", scene.name);
    }
}

/// In the variants of annex B the RT tasks take the share in the scene's name, and last
/// as long as the normal tasks need at best.
#[test]
fn variants_of_annex_b_have_the_share_in_their_name() {
    use lollobrigida::scene::Amount::Us;
    for pct in [25.0, 50.0, 75.0, 90.0] {
        let scene = find(&format!("annexb-{pct}")).unwrap();
        let tasks: u32 = scene.groups.iter().map(|g| g.count).sum();
        assert_eq!(tasks, 16);
        let Some(Us(normal_us)) = scene.groups[0].phases[0].work else { panic!() };
        let best_us = 13.0 * normal_us / (4.0 - 3.0 * pct / 100.0);
        for rt in &scene.groups[1..] {
            let phase = &rt.phases[0];
            let Rhythm::Sleep { every: Us(every), sleep_us } = phase.rhythm else { panic!() };
            assert_eq!(100.0 * every / (every + sleep_us as f64), pct, "{}", scene.name);
            let Some(Us(work_us)) = phase.work else { panic!() };
            let lasts_us = work_us * 100.0 / pct;
            assert!(lasts_us > best_us && lasts_us < 1.5 * best_us, "{lasts_us} {best_us}");
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let error = find("anexb-50").unwrap_err().to_string();
    assert_eq!(error, "anexb-50 is neither a file nor a shipped scene; did you mean annexb-50?");
    let error = find("qqqq").unwrap_err().to_string();
    assert!(error.contains("shipped are annexb, annexb-0"), "{error}");
}

#[test]
fn a_file_wins_over_a_shipped_scene_and_mistakes_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.scn");
    std::fs::write(&path, "{\nloop = 3\n}\n").unwrap();
    let scene = find(path.to_str().unwrap()).unwrap();
    assert_eq!((scene.name.as_str(), scene.groups.len()), ("mine", 1));
    std::fs::write(&path, "{\nlop = 3\n}\n").unwrap();
    let error = find(path.to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("mine.scn:2:1: `lop` is no known key: did you mean `loop`?"), "{error}");
}

#[test]
fn what_is_no_scene_at_all_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let error = find(dir.path().to_str().unwrap()).unwrap_err().to_string();
    assert!(error.contains("cannot read the scene"), "{error}");
    let path = dir.path().join("long.scn");
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    let error = read(&path).unwrap_err().to_string();
    assert!(error.contains("is longer than 1048576 bytes"), "{error}");
    std::fs::write(&path, b"{\nloop = 1\n}\n# caf\xe9\n").unwrap();
    let report = read(&path).unwrap_err();
    let error = render(&report, false);
    assert!(error.contains("long.scn:4:6: no text: expected text in UTF-8"), "{error}");
    assert!(render(&report, true).contains("long.scn:4:6"));
}
