// SPDX-License-Identifier: GPL-2.0-only
//! Pipelines of real tasks: every item arrives once.

use crate::help::*;
use lollobrigida::actor::report::latency;
use lollobrigida::scene::{Amount, Group, Rhythm};

const SHORT: Amount = Amount::Loops(0.1);
const ITEMS: Rhythm = Rhythm::Items { burst: SHORT };

fn source(name: &str, count: u32, items: f64) -> Group {
    let rhythm = Rhythm::Sleep { every: SHORT, sleep_us: 0 };
    Group { count, ..group(name, phase(items / 10.0, rhythm)) }
}

fn follower(name: &str, count: u32, follows: &[&str]) -> Group {
    let follows = follows.iter().map(|f| (*f).to_owned()).collect();
    Group { count, follows, buffer: 3, item_kb: 3, ..group(name, endless(ITEMS)) }
}

#[test]
fn every_item_goes_through_a_chain_once() {
    let told = run(&build(vec![
        source("makes", 1, 300.0),
        follower("passes", 1, &["makes"]),
        follower("takes", 1, &["passes"]),
    ]));
    let counts: Vec<_> = told.iter().map(|r| (r.items_taken, r.items_posted)).collect();
    assert_eq!(counts, [(0, 300), (300, 300), (300, 0)]);
    assert_eq!((told[1].steps, told[2].steps), (300 * 410, 300 * 410));
    assert!(told.iter().all(|r| !r.cut));
    // ages are told at the end of the chain, and are of the chain's begin
    assert_eq!((&told[0].item_age, &told[1].item_age), (&None, &None));
    assert_eq!(latency(told[2].item_age.as_ref().unwrap()).count, 300);
}

#[test]
fn an_item_is_as_old_as_what_it_was_made_of() {
    let long = Rhythm::Items { burst: Amount::Loops(100.0) };
    let slow = Group { phases: vec![endless(long)], ..follower("passes", 1, &["makes"]) };
    let last = follower("takes", 1, &["passes"]);
    let told = run(&build(vec![source("makes", 1, 20.0), slow, last]));
    let age = latency(told[2].item_age.as_ref().unwrap());
    let burst_ns = (told[1].ended_ns - told[1].begun_ns) / 20;
    assert!(age.p50_ns > burst_ns / 2, "{age:?}, in between {burst_ns}");

    let late = Group { start_us: 50_000, ..source("late", 1, 3.0) };
    let told =
        run(&build(vec![source("early", 1, 3.0), late, follower("joins", 1, &["early", "late"])]));
    let age = latency(told[2].item_age.as_ref().unwrap());
    // what was early waited for what was late
    assert!(age.max_ns > (told[1].begun_ns - told[0].begun_ns) / 2, "{age:?}");
}

#[test]
fn many_feed_few_and_few_feed_many() {
    let told = run(&build(vec![
        source("four", 4, 50.0),
        follower("two", 2, &["four"]),
        follower("three", 3, &["two"]),
    ]));
    let taken: Vec<_> = told.iter().map(|r| r.items_taken).collect();
    let posted: Vec<_> = told.iter().map(|r| r.items_posted).collect();
    // each of the two takes from two; one of them posts to two
    assert_eq!(taken, [0, 0, 0, 0, 100, 100, 50, 50, 50]);
    assert_eq!(posted, [50, 50, 50, 50, 100, 50, 0, 0, 0]);
}

#[test]
fn a_join_ends_with_its_shortest_side_and_nobody_is_left_blocked() {
    let told = run(&build(vec![
        source("long", 1, 80.0),
        source("short", 1, 30.0),
        follower("joins", 1, &["long", "short"]),
    ]));
    assert_eq!((told[0].steps, told[1].items_posted), (80 * 410 - 32, 30));
    assert_eq!(told[2].steps, 30 * 410);
    assert!(told.iter().all(|r| !r.cut && r.failed.is_none()));
}

#[test]
fn work_bounds_the_items_taken() {
    let bounded = Group { phases: vec![phase(1.0, ITEMS)], ..follower("takes", 1, &["makes"]) };
    let told = run(&build(vec![source("makes", 1, 300.0), bounded]));
    assert_eq!((told[1].items_taken, told[1].steps), (10, 4096));
    assert_eq!(told[0].steps, 30 * 4096);
}
