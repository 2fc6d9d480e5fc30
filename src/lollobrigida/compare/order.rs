// SPDX-License-Identifier: GPL-2.0-only
//! In which order the schedulers take turns. A machine drifts (it warms up, others come
//! and go); an order that alternates lets the drift fall on all of them alike.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::execute::Purpose;

/// How schedulers take turns. They do so in rounds in which each has one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// Forward, then backward, and so on: with an even number of runs a steady drift of
    /// the machine falls on all schedulers alike
    Abba,
    /// All runs of the first, then all of the second: fewest changes, blind to drift
    Aabb,
    /// Each round in an order of its own, from the seed
    Random,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the scheduler.
    pub under: usize,
    /// Why the scene is run.
    pub purpose: Purpose,
}

/// The whole sequence: `runs` measured runs under each of `unders` schedulers. Where the
/// scheduler changes, `warm_ups` runs come first, since it begins with empty queues and
/// without knowledge of the tasks. `seed` matters for [`Order::Random`] only.
#[must_use]
pub fn sequence(order: Order, unders: usize, runs: u32, warm_ups: u32, seed: u64) -> Vec<Step> {
    let turns: Vec<(usize, u32)> = match order {
        Order::Aabb => (0..unders).flat_map(|u| (0..runs).map(move |run| (u, run))).collect(),
        Order::Abba => (0..runs).flat_map(|run| abba_round(unders, run)).collect(),
        Order::Random => {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            (0..runs).flat_map(|run| shuffled_round(unders, run, &mut rng)).collect()
        }
    };
    let mut steps = Vec::new();
    let mut in_charge = None;
    for (under, run) in turns {
        if in_charge.replace(under) != Some(under) {
            steps.extend((0..warm_ups).map(|_| Step { under, purpose: Purpose::WarmUp }));
        }
        steps.push(Step { under, purpose: Purpose::Measure(run) });
    }
    steps
}

fn abba_round(unders: usize, run: u32) -> Vec<(usize, u32)> {
    let forward = (0..unders).map(|under| (under, run));
    if run.is_multiple_of(2) { forward.collect() } else { forward.rev().collect() }
}

fn shuffled_round(unders: usize, run: u32, rng: &mut ChaCha8Rng) -> Vec<(usize, u32)> {
    let mut round: Vec<(usize, u32)> = (0..unders).map(|under| (under, run)).collect();
    // Fisher and Yates; with a few schedulers the modulo's bias is below 2^-60
    for last in (1..round.len()).rev() {
        let other = rng.next_u64() % (last as u64 + 1);
        round.swap(last, other as usize);
    }
    round
}
