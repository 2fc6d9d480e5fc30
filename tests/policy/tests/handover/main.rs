// SPDX-License-Identifier: GPL-2.0-only
//! policy/handover.h under every interleaving and every order that C11 allows and loom models.
//! docs/decisions/0007-handover-check.md says why loom, and what it does not see.

mod custody;
mod ring;

use loom::thread;
use ring::{Plant, Ring, SLOTS};
use std::sync::{Arc, Mutex};

/// What the readers got, in the order in which they read it; no access of it is a step for loom.
type Log = Arc<Mutex<Vec<u64>>>;

fn note(log: &Log, entry: u64) {
    log.lock().expect("no panic under the lock").push(entry);
}

/// 1 MiB, in the words of loom's coroutines.
const STACK_WORDS: usize = 1 << 17;

/// What an NRT CPU does when it is kicked.
pub fn drain(ring: &Ring, mut each: impl FnMut(u64)) {
    while !ring.is_empty() && ring.claim() {
        while let Some(entry) = ring.pop() {
            each(entry);
        }
        if ring.release() {
            return;
        }
    }
}

/// Explores `scene`, with at most so many switches where no thread has to wait, or with all.
pub fn explore(preemptions: Option<usize>, scene: impl Fn() + Sync + Send + 'static) {
    let mut checker = loom::model::Builder::new();
    checker.preemption_bound = preemptions;
    checker.max_branches = 10_000;
    let scene = Arc::new(scene);
    checker.check(move || {
        // a panic needs more than the 32 KiB that loom's first thread has
        let scene = scene.clone();
        let roomy = thread::Builder::new().stack_size(STACK_WORDS);
        let scene = roomy.spawn(move || scene()).expect("the scene's thread");
        scene.join().expect("the scene ends");
    });
}

/// The RT CPU evicts `entries` tasks and kicks an NRT CPU for each. Whoever reads, in the end each
/// entry has been read once, in order, or was refused by a full ring.
fn evictions(entries: u64, plant: Plant) {
    // of two every interleaving, of three those with up to four preemptions; to find these
    // two bugs needs fewer, and to go on to more only takes longer
    let preemptions = match plant {
        Plant::FullIgnored | Plant::HeadFirst => Some(2),
        _ => (entries > 2).then_some(4),
    };
    explore(preemptions, move || {
        let (ring, log) = (Arc::new(Ring::new(plant)), Log::default());
        let mut refused = Vec::new();
        let mut readers = Vec::new();
        for entry in 1..=entries {
            if !ring.push(entry) {
                refused.push(entry);
                continue;
            }
            let (ring, log) = (ring.clone(), log.clone());
            // the kick: what was pushed before it is seen by whom it wakes
            readers.push(thread::spawn(move || drain(&ring, |entry| note(&log, entry))));
        }
        for reader in readers {
            reader.join().expect("a reader ends");
        }
        let read = log.lock().expect("no panic under the lock").clone();
        let pushed: Vec<u64> = (1..=entries).filter(|e| !refused.contains(e)).collect();
        assert_eq!(read, pushed, "lost, doubled or out of order");
        assert!(refused.len() <= (entries as usize).saturating_sub(SLOTS), "refused too many");
    });
}

#[test]
fn a_full_ring_says_so_and_goes_on_when_read() {
    loom::model(|| {
        let ring = Ring::new(Plant::None);
        assert!(ring.is_empty());
        for round in 0..3 {
            let base = 10 * round;
            assert!(ring.push(base + 1) && ring.push(base + 2));
            assert!(!ring.push(base + 3), "two slots");
            assert!(ring.claim() && !ring.claim(), "one reader");
            assert_eq!(ring.pop(), Some(base + 1));
            assert!(ring.push(base + 3), "a slot is free again");
            assert_eq!(
                (ring.pop(), ring.pop(), ring.pop()),
                (Some(base + 2), Some(base + 3), None)
            );
            assert!(!ring.release(), "somebody came");
            assert!(ring.claim() && ring.release() && ring.is_empty());
        }
    });
}

#[test]
fn two_evictions_are_read_once_and_in_order() {
    evictions(2, Plant::None);
}

#[test]
fn three_evictions_through_two_slots_are_read_once_and_in_order() {
    evictions(3, Plant::None);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_relaxed_publish_is_caught() {
    evictions(3, Plant::RelaxedPublish);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_relaxed_look_is_caught() {
    evictions(3, Plant::RelaxedLook);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_relaxed_claim_is_caught() {
    evictions(3, Plant::RelaxedClaim);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_ignored_claim_is_caught() {
    evictions(2, Plant::ClaimIgnored);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_head_before_read_is_caught() {
    evictions(3, Plant::HeadFirst);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_write_into_a_full_ring_is_caught() {
    evictions(3, Plant::FullIgnored);
}

#[test]
#[should_panic(expected = "lost, doubled or out of order")]
fn planted_silent_release_is_caught() {
    evictions(2, Plant::NobodyTold);
}
