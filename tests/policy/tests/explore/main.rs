// SPDX-License-Identifier: GPL-2.0-only
//! Small machines, explored to the last state: the laws of the queues hold in each of them, and
//! each planted bug is found.

mod check;
mod machine;
mod model;
mod plant;
mod take;

use check::explore;
use machine::Kind::{Attempting, Calm, Kernel, Rt1};
use machine::{Actor, PutBack, Scene, any, on};
use plant::Plant;

const HEAVY: Actor = Actor { weight: 300, ..any(Calm) };
/// States: more would take too long.
const LIMIT: usize = 1_500_000;

const ONE_AND_ONE: &[(usize, bool)] = &[(0, false), (0, true)];
const TWO_AND_ONE: &[(usize, bool)] = &[(0, false), (0, false), (0, true)];
const TWO_AND_TWO: &[(usize, bool)] = &[(0, false), (0, false), (0, true), (0, true)];
const ONE_AND_TWO: &[(usize, bool)] = &[(0, false), (1, false), (1, false)];
const TWO_GROUPS: &[(usize, bool)] = &[(0, false), (0, true), (1, false)];

/// CPUs and tasks.
macro_rules! scene {
    ($cpus:expr, [$($task:expr),*]) => {
        Scene { cpus: $cpus, tasks: const { &[$($task),*] }, put_back: PutBack::Late }
    };
}

fn holds(scene: Scene) {
    holds_with(&[PutBack::AtOnce, PutBack::Late], scene);
}

fn holds_with(ways: &[PutBack], scene: Scene) {
    for &put_back in ways {
        let scene = Scene { put_back, ..scene };
        let states = explore(&scene, Plant::None, LIMIT);
        println!("{states} states of {scene:?}");
        assert!(states > 1_000, "the scene has become empty: {states} states");
    }
}

#[test]
fn one_and_one_with_every_kind() {
    holds(scene!(ONE_AND_ONE, [any(Calm), any(Attempting), any(Rt1), any(Kernel)]));
}

#[test]
fn two_and_one_with_computing_and_attempting_tasks() {
    holds(scene!(TWO_AND_ONE, [any(Calm), any(Calm), any(Attempting), any(Attempting)]));
}

#[test]
fn two_and_two() {
    holds(scene!(TWO_AND_TWO, [any(Calm), any(Calm), any(Attempting)]));
}

#[test]
fn two_rt1_tasks() {
    holds(scene!(TWO_AND_ONE, [any(Rt1), any(Rt1), any(Calm)]));
}

#[test]
fn tasks_with_some_of_the_cpus() {
    // one NRT and the RT CPU; the RT CPU only; NRT CPU 1 only
    holds(scene!(
        TWO_AND_ONE,
        [on(Attempting, 0b101), on(Attempting, 0b100), on(Calm, 0b010), any(Calm)]
    ));
}

#[test]
fn tasks_with_rt_cpus_only() {
    holds(scene!(TWO_AND_TWO, [on(Attempting, 0b1100), on(Calm, 0b1100), any(Calm)]));
}

#[test]
fn held_tasks() {
    let held = |scene| holds_with(&[PutBack::Held], scene);
    held(scene!(ONE_AND_ONE, [any(Calm), any(Attempting), any(Rt1)]));
    held(scene!(TWO_AND_ONE, [any(Calm), on(Attempting, 0b101), on(Calm, 0b010)]));
    held(scene!(TWO_GROUPS, [any(Calm), any(Attempting), on(Attempting, 0b100)]));
}

#[test]
fn two_groups_even_out() {
    // bound to the second group, and to the first
    holds(scene!(TWO_GROUPS, [any(Calm), any(Attempting), on(Attempting, 0b100), on(Calm, 0b011)]));
    holds(scene!(TWO_GROUPS, [HEAVY, any(Calm), any(Attempting)]));
    // light ones that may not leave, before a heavy one that may
    holds(scene!(TWO_GROUPS, [on(Calm, 0b011), on(Calm, 0b011), HEAVY, any(Calm)]));
}

/// The scene breaks with the bug, in these words.
fn found(scene: Scene, plant: Plant, words: &str) {
    let explored = std::panic::catch_unwind(|| explore(&scene, plant, LIMIT));
    let Err(cause) = explored else { panic!("{plant:?} was not found") };
    let text = cause.downcast_ref::<String>().map_or("", String::as_str);
    assert!(text.contains(words), "{plant:?}: {text}");
}

#[test]
fn planted_bugs_are_found() {
    let mixed = scene!(TWO_AND_ONE, [any(Calm), any(Calm), any(Attempting)]);
    let partial = scene!(ONE_AND_TWO, [any(Calm), on(Attempting, 0b110)]);
    let firm = scene!(TWO_AND_ONE, [any(Rt1), any(Calm), any(Calm), any(Calm)]);
    let apart = scene!(TWO_GROUPS, [any(Calm), any(Attempting), any(Attempting)]);
    let bound = scene!(TWO_GROUPS, [on(Calm, 0b011), on(Calm, 0b011), HEAVY, any(Calm)]);
    let at_once = Scene { put_back: PutBack::AtOnce, ..mixed };
    let held = Scene { put_back: PutBack::Held, ..mixed };
    for (scene, plant, words) in [
        (partial, Plant::MaskIgnored, "none of its CPUs is sure to look"),
        (mixed, Plant::SectionIgnored, "in the kernel on RT CPU"),
        (mixed, Plant::NotRoused, "sleeps while"),
        (mixed, Plant::RtTakesNothing, "sleeps while"),
        (at_once, Plant::NotOffered, "sleeps while"),
        (firm, Plant::NoReturn, "does not return"),
        (firm, Plant::NoPreemption, "waits while"),
        (apart, Plant::GroupsIgnored, "sleeps while"),
        (mixed, Plant::Doubled, "doubled"),
        (mixed, Plant::Lost, "lost"),
        (held, Plant::HeldNotRoused, "sleeps while"),
        (held, Plant::HeldForgotten, "sleeps while"),
        (firm, Plant::LastForgotten, "sleeps while"),
        (apart, Plant::LoadIgnored, "worst load"),
        (bound, Plant::HeadJudged, "worst load"),
    ] {
        found(scene, plant, words);
    }
}
