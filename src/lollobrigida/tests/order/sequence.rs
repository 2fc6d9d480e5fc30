// SPDX-License-Identifier: GPL-2.0-only
//! Properties of the order in which schedulers take turns.

use lollobrigida::compare::order::{Order, Step, sequence};
use lollobrigida::execute::Purpose;
use proptest::prelude::*;

fn any_order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Abba), Just(Order::Aabb), Just(Order::Random)]
}

/// Measured runs as (place among the measured ones, scheduler, number).
fn measured(steps: &[Step]) -> Vec<(usize, usize, u32)> {
    let runs = steps.iter().filter_map(|step| match step.purpose {
        Purpose::Measure(run) => Some((step.under, run)),
        Purpose::WarmUp => None,
    });
    runs.enumerate().map(|(place, (under, run))| (place, under, run)).collect()
}

fn letters(order: Order, unders: usize, runs: u32, seed: u64) -> String {
    let all = measured(&sequence(order, unders, runs, 0, seed));
    all.iter().map(|(_, under, _)| char::from(b'A' + *under as u8)).collect()
}

#[test]
fn orders_by_name() {
    assert_eq!(letters(Order::Abba, 2, 4, 0), "ABBAABBA");
    assert_eq!(letters(Order::Abba, 3, 3, 0), "ABCCBAABC");
    assert_eq!(letters(Order::Aabb, 2, 3, 0), "AAABBB");
}

#[test]
fn warm_ups_come_where_the_scheduler_changes_only() {
    let purposes = |steps: Vec<Step>| -> String {
        let letter = |step: &Step| match step.purpose {
            Purpose::WarmUp => (b'a' + step.under as u8) as char,
            Purpose::Measure(_) => (b'A' + step.under as u8) as char,
        };
        steps.iter().map(letter).collect()
    };
    assert_eq!(purposes(sequence(Order::Abba, 2, 2, 1, 0)), "aAbBBaA");
    assert_eq!(purposes(sequence(Order::Aabb, 2, 2, 2, 0)), "aaAAbbBB");
}

#[test]
fn random_depends_on_the_seed_and_on_nothing_else() {
    let orders: std::collections::BTreeSet<String> =
        (0..32).map(|seed| letters(Order::Random, 3, 4, seed)).collect();
    assert!(orders.len() > 16, "32 seeds give but {} orders", orders.len());
    assert_eq!(letters(Order::Random, 3, 4, 7), letters(Order::Random, 3, 4, 7));
}

proptest! {
    #[test]
    fn each_scheduler_gets_its_runs_in_order(
        order in any_order(), unders in 1usize..6, runs in 1u32..12, warm_ups in 0u32..3,
        seed: u64,
    ) {
        let all = measured(&sequence(order, unders, runs, warm_ups, seed));
        prop_assert_eq!(all.len(), unders * runs as usize);
        for under in 0..unders {
            let numbers: Vec<u32> =
                all.iter().filter(|(_, u, _)| *u == under).map(|(_, _, run)| *run).collect();
            prop_assert_eq!(numbers, (0..runs).collect::<Vec<_>>());
        }
    }

    #[test]
    fn abba_is_balanced(unders in 1usize..6, pairs in 1u32..8) {
        let all = measured(&sequence(Order::Abba, unders, 2 * pairs, 0, 0));
        let sum = |under| all.iter().filter(|a| a.1 == under).map(|a| a.0).sum::<usize>();
        for under in 1..unders {
            prop_assert_eq!(sum(under), sum(0));
        }
    }

    #[test]
    fn every_round_has_each_scheduler_once(
        alternating in prop_oneof![Just(Order::Abba), Just(Order::Random)],
        unders in 1usize..6, runs in 1u32..8, seed: u64,
    ) {
        let all = measured(&sequence(alternating, unders, runs, 0, seed));
        for (number, round) in all.chunks(unders).enumerate() {
            let mut present: Vec<usize> = round.iter().map(|r| r.1).collect();
            present.sort_unstable();
            prop_assert_eq!(present, (0..unders).collect::<Vec<_>>());
            prop_assert!(round.iter().all(|r| r.2 as usize == number));
        }
    }

    #[test]
    fn warm_ups_precede_each_change(
        order in any_order(), unders in 1usize..5, runs in 1u32..6, warm_ups in 0u32..4,
        seed: u64,
    ) {
        let steps = sequence(order, unders, runs, warm_ups, seed);
        for stay in steps.chunk_by(|a, b| a.under == b.under) {
            let warm = |step: &Step| step.purpose == Purpose::WarmUp;
            let before = stay.iter().take_while(|s| warm(s)).count();
            prop_assert_eq!(before, warm_ups as usize);
            prop_assert_eq!(stay.iter().filter(|s| warm(s)).count(), before);
        }
    }
}
