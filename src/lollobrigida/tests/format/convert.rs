// SPDX-License-Identifier: GPL-2.0-only
//! What convert writes reads as the same scene.

use lollobrigida::scene::{
    Amount, Call, CallKind, Cgroup, Cpus, Format, Group, Phase, Rhythm, Scene, Sched, convert,
    parse, shipped,
};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![
        (0.001..1e12).prop_map(Amount::Loops),
        (1u64..1_000_000).prop_map(|n| Amount::Loops(n as f64)),
        (0.1..1e12).prop_map(Amount::Us),
    ]
}

fn rhythm(follows: bool) -> impl Strategy<Value = Rhythm> {
    let periodic = (1u64..3_600_000_000).prop_flat_map(|period_us| {
        (1..=period_us).prop_flat_map(move |deadline_us| {
            let burst = prop_oneof![
                (0.001..1e12).prop_map(Amount::Loops),
                (0.1..=deadline_us as f64).prop_map(Amount::Us),
            ];
            burst.prop_map(move |burst| Rhythm::Periodic { period_us, burst, deadline_us })
        })
    });
    let sleep = (amount(), 0u64..3_600_000_000)
        .prop_map(|(every, sleep_us)| Rhythm::Sleep { every, sleep_us });
    let items = amount().prop_map(|burst| Rhythm::Items { burst });
    let others = prop_oneof![Just(Rhythm::Steady), sleep, periodic].boxed();
    if follows { prop_oneof![2 => items, 1 => others].boxed() } else { others }
}

fn phase(follows: bool) -> impl Strategy<Value = Phase> {
    let call = (0..CallKind::ALL.len(), amount())
        .prop_map(|(i, every)| Call { kind: CallKind::ALL[i].1, every });
    (amount(), option::of(1u64..86_400_000), rhythm(follows), option::of(call)).prop_map(
        |(work, duration_ms, rhythm, call)| Phase { work: Some(work), duration_ms, rhythm, call },
    )
}

fn sched() -> impl Strategy<Value = Sched> {
    let nice = || -20..=19;
    let deadline = (2u64..=4_194_304).prop_flat_map(|period_us| {
        (2..=period_us).prop_flat_map(move |deadline_us| {
            (2..=deadline_us).prop_map(move |runtime_us| Sched::Deadline {
                runtime_us,
                deadline_us,
                period_us: period_us.max(100),
            })
        })
    });
    prop_oneof![
        nice().prop_map(|nice| Sched::Normal { nice }),
        nice().prop_map(|nice| Sched::Batch { nice }),
        nice().prop_map(|nice| Sched::Ext { nice }),
        Just(Sched::Idle),
        (1u32..=99).prop_map(|priority| Sched::Fifo { priority }),
        (1u32..=99).prop_map(|priority| Sched::Rr { priority }),
        deadline,
    ]
}

fn cpus() -> impl Strategy<Value = Cpus> {
    btree_set(prop_oneof![0u32..8, 0u32..8192], 1..6).prop_map(Cpus)
}

/// Groups may follow those before them.
fn group(nth: usize) -> impl Strategy<Value = Group> {
    let follows = vec(any::<bool>(), nth).prop_map(|picks| {
        let picked = picks.iter().enumerate().filter(|(_, pick)| **pick);
        picked.map(|(i, _)| format!("g{i}")).collect::<Vec<_>>()
    });
    follows
        .prop_flat_map(move |follows| {
            let phases = vec(phase(!follows.is_empty()), 1..4);
            let times = (1u32..5, 0u64..3_600_000_000, 0u64..3_600_000_000, 0u64..16_777_216);
            let rest = (0u32..=100, 1u32..64, 0u32..1024, 1usize..4, option::of(1u32..10_000));
            let place = (option::of(cpus()), any::<bool>());
            (Just(follows), sched(), place, times, rest, phases)
        })
        .prop_map(move |(follows, sched, (cpus, grouped), times, rest, phases)| {
            let (count, start_us, spread_us, memory_kb) = times;
            let (jitter_pct, buffer, item_kb, repeat, weight) = rest;
            let mut group = Group {
                name: format!("g{nth}"),
                count,
                sched,
                cpus,
                cgroup: grouped.then(|| Cgroup { path: format!("p/g{nth}"), weight }),
                start_us,
                spread_us,
                memory_kb,
                jitter_pct,
                follows,
                buffer,
                item_kb,
                phases: std::iter::repeat_n(phases, repeat).flatten().collect(),
            };
            settle(&mut group);
            group
        })
}

/// Takes out what no file can say.
fn settle(group: &mut Group) {
    if matches!(group.sched, Sched::Deadline { .. }) {
        group.cpus = None;
        for call in group.phases.iter_mut().filter_map(|p| p.call.as_mut()) {
            call.kind = CallKind::Lock;
        }
    }
    if group.follows.is_empty() {
        (group.buffer, group.item_kb) = (4, 1);
    } else {
        group.phases[0].rhythm = Rhythm::Items { burst: Amount::Us(3.5) };
        group.phases[0].work = None;
    }
    // Whoever may be followed posts.
    if group.phases.iter().all(|p| p.rhythm == Rhythm::Steady) {
        group.phases[0].rhythm = Rhythm::Sleep { every: Amount::Loops(1.0), sleep_us: 0 };
    }
}

fn scene() -> impl Strategy<Value = Scene> {
    let head = (
        "\\PC{1,20}",
        prop_oneof![Just(String::new()), "\\PC*"],
        any::<u64>(),
        option::of(1u64..86_400_000),
        option::of(cpus()),
    );
    let groups =
        (1usize..5).prop_flat_map(|n| (0..n).map(|i| group(i).boxed()).collect::<Vec<_>>());
    (head, groups).prop_map(|((why, good, seed, limit_ms, rt_cpus), groups)| Scene {
        name: "made".into(),
        why: format!("w{why}w"),
        good: good.trim().to_owned(),
        seed,
        limit_ms,
        rt_cpus,
        groups,
    })
}

fn again(scene: &Scene) -> Scene {
    let text = convert(scene);
    parse(&scene.name, &text, Format::Toml).unwrap_or_else(|m| panic!("{m}\n{text}"))
}

proptest! {
    // A failure is shown shrunk; a file of seeds beside the sources would tell no more.
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]
    #[test]
    fn converted_scenes_read_as_they_were(scene in scene()) {
        prop_assert_eq!(again(&scene), scene);
    }
}

#[test]
fn shipped_scenes_survive_conversion() {
    for (name, _) in shipped() {
        let scene = lollobrigida::scene::find(name).unwrap();
        assert_eq!(again(&scene), scene, "{name}");
    }
}

#[test]
fn a_missing_reason_becomes_a_sentence_to_replace() {
    let scene = parse("old", "{\nloop = 7\n}\n", Format::AnnexB).unwrap();
    assert!(scene.why.is_empty());
    let text = convert(&scene);
    assert!(text.contains("why = \"Replace this: "), "{text}");
    assert_eq!(Scene { why: String::new(), ..again(&scene) }, scene);
}

#[test]
fn repetition_is_found_again() {
    let text = "why = 'w'\n[[group]]\nname = 'a'\nrepeat = 50\n\
                [[group.phase]]\nloop = 1\n[[group.phase]]\nloop = 2\n";
    let text = convert(&parse("t", text, Format::Toml).unwrap());
    assert!(text.contains("repeat = 50"), "{text}");
    assert_eq!(text.matches("[[group.phase]]").count(), 2, "{text}");
}

#[test]
fn any_mask_is_a_list_that_can_be_read() {
    for digit in ["5", "7", "d", "f"] {
        let mask = digit.repeat(8192 / 4);
        let text = format!("{{\nloop = 1\ncpu_mask = 0x{mask}\n}}\n");
        let scene = parse("wide", &text, Format::AnnexB).unwrap();
        assert_eq!(again(&scene).groups, scene.groups, "0x{digit}...");
    }
}
