// SPDX-License-Identifier: GPL-2.0-only
//! A bounded buffer from one task to one. Lock-free for both; a system call is made only
//! to wait, or to wake one that waits.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use super::Board;
use super::layout::{LinkWords, Side};
use crate::actor::futex::{self, Woken};

/// A cache line of most machines: items are touched at this distance.
const LINE: usize = 64;

/// In `Side::word`: the other side waits. The bits above it count changes.
const WAITS: u32 = 1;

/// One link of the board.
pub(super) struct Link<'b> {
    board: &'b Board,
    words: &'b LinkWords,
    /// Where the stamps begin; the items follow them.
    stamps: usize,
    items: u64,
    item_bytes: usize,
}

/// What came of a turn at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::actor) enum Turn {
    /// An item went through, with its stamp.
    Item(u64),
    /// The other side has ended.
    Closed,
    /// The time came, or the run is stopped.
    Left,
}

/// The side that posts.
pub(in crate::actor) struct Sender<'b>(pub(super) Link<'b>);

/// The side that takes.
pub(in crate::actor) struct Receiver<'b>(pub(super) Link<'b>);

/// System calls of the turns so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::actor) struct LinkCalls {
    pub waits: u64,
    pub wakes: u64,
}

impl Board {
    pub(super) fn link(&self, i: usize) -> Link<'_> {
        let link = self.plan.links[i];
        let begin = self.layout.links[i];
        Link {
            board: self,
            words: self.memory.at(begin),
            stamps: begin + size_of::<LinkWords>(),
            items: u64::from(link.items),
            item_bytes: link.item_bytes as usize,
        }
    }
}

impl Sender<'_> {
    /// Writes an item with its stamp, waiting for room until `until_ns`.
    pub fn post(&mut self, stamp: u64, until_ns: Option<u64>, calls: &mut LinkCalls) -> Turn {
        let Link { board, words, items, .. } = self.0;
        let nth = words.posted.count.load(Relaxed);
        let room = || nth - words.taken.count.load(SeqCst) < items;
        if let Some(left) = wait(board, &words.taken, room, until_ns, &mut calls.waits) {
            return left;
        }
        if words.taken.closed.load(SeqCst) != 0 {
            return Turn::Closed;
        }
        self.0.stamp(nth).store(stamp, Relaxed);
        let item = self.0.item(nth);
        for at in (0..self.0.item_bytes).step_by(LINE) {
            // SAFETY: inside the item, which is the sender's until the count tells.
            unsafe { item.add(at).write_volatile(nth as u8) };
        }
        pass(&words.posted, nth + 1, calls);
        Turn::Item(stamp)
    }

    /// No more items will come. Returns how many system calls that was.
    pub fn close(&self) -> u64 {
        close(&self.0.words.posted)
    }
}

impl Receiver<'_> {
    /// Reads the oldest item and returns its stamp, waiting for one until `until_ns`.
    pub fn take(&mut self, until_ns: Option<u64>, calls: &mut LinkCalls) -> Turn {
        let Link { board, words, .. } = self.0;
        let nth = words.taken.count.load(Relaxed);
        let there = || words.posted.count.load(SeqCst) > nth;
        if let Some(left) = wait(board, &words.posted, there, until_ns, &mut calls.waits) {
            return left;
        }
        // looked at again: the last item may have come just before the end
        if words.posted.count.load(Acquire) <= nth {
            return Turn::Closed;
        }
        let stamp = self.0.stamp(nth).load(Relaxed);
        let item = self.0.item(nth);
        for at in (0..self.0.item_bytes).step_by(LINE) {
            // SAFETY: inside the item, which is the receiver's until the count tells.
            unsafe { item.add(at).read_volatile() };
        }
        pass(&words.taken, nth + 1, calls);
        Turn::Item(stamp)
    }

    /// No more items are wanted. Returns how many system calls that was.
    pub fn close(&self) -> u64 {
        close(&self.0.words.taken)
    }
}

impl Link<'_> {
    /// Wakes whoever waits here, to look at the stop word.
    pub fn wake_both(&self) {
        for side in [&self.words.posted, &self.words.taken] {
            change(side);
            futex::wake(&side.word);
        }
    }

    fn stamp(&self, nth: u64) -> &AtomicU64 {
        let slot = (nth % self.items) as usize;
        self.board.memory.at(self.stamps + slot * size_of::<u64>())
    }

    fn item(&self, nth: u64) -> *mut u8 {
        let first = self.stamps + self.items as usize * size_of::<u64>();
        let slot = (nth % self.items) as usize;
        self.board.memory.area(first + slot * self.item_bytes, self.item_bytes)
    }
}

/// Waits until `go`, or the other side's end: `None`. `Some`: left before.
fn wait(
    board: &Board,
    other: &Side,
    go: impl Fn() -> bool,
    until_ns: Option<u64>,
    waits: &mut u64,
) -> Option<Turn> {
    loop {
        let seen = other.word.fetch_or(WAITS, SeqCst) | WAITS;
        if go() || other.closed.load(SeqCst) != 0 {
            other.word.fetch_and(!WAITS, SeqCst);
            return None;
        }
        if board.stop_word().load(SeqCst) != 0 {
            return Some(Turn::Left);
        }
        *waits += 1;
        if futex::wait(&other.word, seen, until_ns) == Woken::Late {
            return Some(Turn::Left);
        }
    }
}

/// Counts an item through a side and wakes the other if it waits.
fn pass(side: &Side, count: u64, calls: &mut LinkCalls) {
    side.count.store(count, SeqCst);
    if change(side) {
        calls.wakes += 1;
        futex::wake(&side.word);
    }
}

fn close(side: &Side) -> u64 {
    side.closed.store(1, SeqCst);
    if !change(side) {
        return 0;
    }
    futex::wake(&side.word);
    1
}

/// Makes a wait that began before return, and clears `WAITS`. Returns whether it was set.
///
/// Both are one step: between two, the other side could begin its next wait and see the
/// new word, but lose its `WAITS`, so that no later item would wake it.
fn change(side: &Side) -> bool {
    let old = side.word.fetch_update(SeqCst, SeqCst, |word| Some((word | WAITS).wrapping_add(1)));
    old.is_ok_and(|word| word & WAITS != 0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;
    use crate::actor::clock::monotonic_ns;
    use crate::plan::{Link, Plan, Scale, Task};

    /// Two tasks and a link of three items.
    fn board() -> Board {
        let task = |takes, posts| Task { takes, posts, ..Task::default() };
        Board::create(&Plan {
            scene: String::new(),
            why: String::new(),
            good: String::new(),
            scale: Scale { steps_per_us: 1.0, steps_per_loop: 1.0, work: 1.0 },
            limit_us: None,
            rt_cpus: None,
            groups: vec![String::new()],
            tasks: vec![task(vec![], vec![0]), task(vec![0], vec![])],
            links: vec![Link { from: 0, to: 1, items: 3, item_bytes: 200 }],
        })
        .unwrap()
    }

    #[test]
    fn items_arrive_once_and_in_order_also_those_before_the_end() {
        const ITEMS: u64 = 20_000;
        let board = board();
        let (mut sender, mut receiver) = (board.sender(0), board.receiver(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut calls = LinkCalls::default();
                for stamp in 0..ITEMS {
                    assert_eq!(sender.post(stamp, None, &mut calls), Turn::Item(stamp));
                }
                sender.close();
            });
            let mut calls = LinkCalls::default();
            for stamp in 0..ITEMS {
                assert_eq!(receiver.take(None, &mut calls), Turn::Item(stamp));
            }
            assert_eq!(receiver.take(None, &mut calls), Turn::Closed);
        });
    }

    #[test]
    fn a_full_buffer_blocks_and_nobody_waits_longer_than_told() {
        let board = board();
        let (mut sender, mut receiver) = (board.sender(0), board.receiver(0));
        let mut calls = LinkCalls::default();
        let soon = || Some(monotonic_ns() + 1_000_000);
        assert_eq!(receiver.take(soon(), &mut calls), Turn::Left);
        for stamp in 0..3 {
            assert_eq!(sender.post(stamp, None, &mut calls), Turn::Item(stamp));
        }
        assert_eq!(sender.post(3, soon(), &mut calls), Turn::Left);
        assert_eq!(receiver.take(None, &mut calls), Turn::Item(0));
        assert_eq!(sender.post(3, soon(), &mut calls), Turn::Item(3));
        board.stop();
        assert_eq!(sender.post(4, None, &mut calls), Turn::Left);
        receiver.close();
        assert_eq!(sender.post(4, None, &mut calls), Turn::Closed);
    }
}
