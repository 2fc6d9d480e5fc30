// SPDX-License-Identifier: GPL-2.0-only
//! Small machines, explored to the last state: what the issue asks to hold, holds in each of them,
//! and each planted bug is found.

mod check;
mod machine;
mod model;
mod pass;

use check::explore;
use machine::Kind::{Attempting, Calm, Kernel, PinnedNrt, PinnedRt, Rt1};
use machine::{Kind, Scene};
use model::Plant;

/// States, of which the greatest scene here has half: more would take too long.
const LIMIT: usize = 1_000_000;

fn scene(nrt: usize, rt: usize, tasks: &'static [Kind]) -> Scene {
    Scene { nrt, rt, tasks, weights: &[], m: 4 }
}

fn holds(scene: &Scene) {
    let states = explore(scene, Plant::None, LIMIT);
    println!("{states} states of {scene:?}");
    assert!(states > 10_000, "the scene has become empty: {states} states");
}

#[test]
fn one_and_one_with_every_kind() {
    holds(&scene(1, 1, &[Calm, Attempting, Rt1, PinnedRt, PinnedNrt]));
}

#[test]
fn one_and_one_with_six_tasks() {
    holds(&scene(1, 1, &[Calm, Calm, Calm, Attempting, Rt1, Kernel]));
}

#[test]
fn two_and_one() {
    holds(&scene(2, 1, &[Calm, Attempting, Attempting, Rt1]));
}

#[test]
fn one_and_two() {
    holds(&scene(1, 2, &[Calm, Attempting, Rt1, PinnedRt]));
}

#[test]
fn one_and_three() {
    holds(&scene(1, 3, &[Calm, Calm, Attempting]));
}

#[test]
fn two_and_two() {
    holds(&scene(2, 2, &[Calm, Calm, Attempting, Rt1]));
}

fn unequal() -> Scene {
    Scene { weights: &[100, 300, 900, 30], m: 2, ..scene(1, 2, &[Calm, Calm, Calm, Calm]) }
}

#[test]
fn unequal_weights() {
    holds(&unequal());
}

fn planted(plant: Plant) {
    explore(&scene(1, 1, &[Calm, Attempting, Attempting, Attempting, Rt1]), plant, LIMIT);
}

#[test]
#[should_panic(expected = " is lost")]
fn planted_overflow_that_nobody_handles_is_caught() {
    planted(Plant::OverflowIgnored);
}

#[test]
#[should_panic(expected = " is doubled")]
fn planted_stale_entry_taken_for_fresh_is_caught() {
    planted(Plant::SeqIgnored);
}

#[test]
#[should_panic(expected = "an NRT CPU sleeps while")]
fn planted_missing_kick_is_caught() {
    planted(Plant::NoKick);
}

#[test]
#[should_panic(expected = "an idle RT CPU is left")]
fn planted_missing_fill_is_caught() {
    planted(Plant::NoFill);
}

#[test]
#[should_panic(expected = "an RT1+ task does not return")]
fn planted_missing_return_is_caught() {
    planted(Plant::NoReturn);
}

#[test]
#[should_panic(expected = "the worst load rose")]
fn planted_moves_without_a_limit_are_caught() {
    explore(&unequal(), Plant::WeightIgnored, LIMIT);
}

#[test]
#[should_panic(expected = "is in the kernel on RT CPU")]
fn planted_blindness_for_sections_is_caught() {
    planted(Plant::SectionIgnored);
}
