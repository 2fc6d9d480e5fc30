// SPDX-License-Identifier: GPL-2.0-only
//! What waits for one viewer. It is bounded: who does not take it in time loses
//! whole intervals, and is told how much that was.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::Wanted;
use super::frame::{Frame, encode, kind};
use crate::model::Lost;

/// Bytes that may wait for a viewer of the daemon's own user.
pub const OWN_ROOM: usize = 32 << 20;
/// Bytes that may wait for a viewer of another user.
pub const OTHERS_ROOM: usize = 8 << 20;

/// Whole frames.
#[derive(Clone, Debug)]
pub struct Chunk {
    bytes: Arc<[u8]>,
    /// How many of them are BPF's.
    records: u64,
    ends_interval: bool,
}

impl Chunk {
    /// `bytes` are whole frames; `ends_interval`: the last of them is a READING.
    pub fn new(bytes: Vec<u8>, ends_interval: bool) -> Self {
        let (mut records, mut rest) = (0, &bytes[..]);
        while let Ok(Some((frame, after))) = Frame::split(rest) {
            records += u64::from(frame.is_of_bpf());
            rest = after;
        }
        Self { records, ends_interval, bytes: bytes.into() }
    }
}

/// Nothing came before the deadline.
#[derive(Debug, PartialEq, Eq)]
pub struct TimedOut;

/// See above.
#[derive(Debug)]
pub struct Queue {
    /// What its viewer wants.
    pub wanted: Wanted,
    /// Bytes that may wait, but for the begin of a stream.
    room: usize,
    waiting: Mutex<Waiting>,
    come: Condvar,
}

#[derive(Debug)]
struct Waiting {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The stream is to begin.
    new: bool,
    /// Until the end of this interval nothing is taken.
    skipping: bool,
    /// Records that were not taken, and of how many the viewer knows.
    lost: u64,
    told: u64,
    closed: bool,
}

impl Queue {
    /// An empty one, for so many bytes and the begin of a stream.
    pub fn new(wanted: Wanted, room: usize) -> Self {
        let waiting = Waiting {
            chunks: VecDeque::new(),
            bytes: 0,
            new: true,
            skipping: false,
            lost: 0,
            told: 0,
            closed: false,
        };
        Self { wanted, room, waiting: Mutex::new(waiting), come: Condvar::new() }
    }

    /// Waits it for the begin of its stream?
    pub fn is_new(&self) -> bool {
        self.waiting().new
    }

    /// Will nothing be added any more?
    pub fn is_closed(&self) -> bool {
        self.waiting().closed
    }

    /// Has the stream begin anew with what is added next.
    pub fn begin_anew(&self) {
        self.waiting().new = true;
    }

    /// Adds frames, if there is room.
    pub fn push(&self, chunk: &Chunk) {
        let mut waiting = self.waiting();
        if waiting.closed {
            return;
        }
        // how a stream begins is not left out: without it the rest means nothing
        let begins = std::mem::take(&mut waiting.new);
        if begins {
            waiting.skipping = false;
            // nor do begins pile up, which are taken without regard to the room
            if waiting.bytes > self.room {
                waiting.clear();
            }
        } else if waiting.skipping || waiting.bytes + chunk.bytes.len() > self.room {
            waiting.lost += chunk.records;
            waiting.skipping = !chunk.ends_interval;
            return;
        }
        if waiting.lost > waiting.told && !begins {
            let mut told = Vec::new();
            encode(&mut told, kind::LOST, 0, &Lost { feed: waiting.lost, ..Lost::default() });
            waiting.told = waiting.lost;
            waiting.add(Chunk::new(told, false));
        }
        if !chunk.bytes.is_empty() {
            waiting.add(chunk.clone());
        }
        self.come.notify_one();
    }

    /// Takes the oldest frames, or waits for some until `deadline`. `None`: nothing will come.
    ///
    /// # Errors
    /// When nothing came in time.
    pub fn pop(&self, deadline: Option<Instant>) -> Result<Option<Arc<[u8]>>, TimedOut> {
        let mut waiting = self.waiting();
        loop {
            if let Some(chunk) = waiting.chunks.pop_front() {
                waiting.bytes -= chunk.bytes.len();
                return Ok(Some(chunk.bytes));
            }
            if waiting.closed {
                return Ok(None);
            }
            waiting = match deadline {
                None => self.come.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(TimedOut);
                    }
                    let waited = self.come.wait_timeout(waiting, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Nothing is added from now on; what waits can still be taken.
    pub fn close(&self) {
        self.waiting().closed = true;
        self.come.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // whoever panicked with it left it whole
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes.len();
        self.chunks.push_back(chunk);
    }

    /// All that waits is lost.
    fn clear(&mut self) {
        self.lost += self.chunks.drain(..).map(|chunk| chunk.records).sum::<u64>();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::frame::put;

    const ROOM: usize = 10_000;

    fn chunk(records: usize, size: usize, ends_interval: bool) -> Chunk {
        let mut bytes = Vec::new();
        for _ in 0..records {
            put(&mut bytes, kind::TASK, 1, &vec![7; size]);
        }
        if ends_interval {
            put(&mut bytes, kind::READING, 1, b"{}");
        }
        Chunk::new(bytes, ends_interval)
    }

    fn kinds(queue: &Queue) -> Vec<u16> {
        let mut kinds = Vec::new();
        while let Ok(Some(bytes)) = queue.pop(Some(Instant::now())) {
            let mut rest = &bytes[..];
            while let Ok(Some((frame, after))) = Frame::split(rest) {
                kinds.push(frame.kind);
                rest = after;
            }
        }
        kinds
    }

    #[test]
    fn who_is_slow_loses_whole_intervals_and_is_told() {
        let queue = Queue::new(Wanted::default(), ROOM);
        queue.push(&chunk(1, 0, true)); // the begin
        queue.push(&chunk(1, ROOM - 200, true));
        // no room for the first half of this interval: the other half is left out, too
        queue.push(&chunk(2, 100, false));
        queue.push(&chunk(1, 0, true));
        queue.push(&chunk(0, 0, true)); // small enough
        let kinds = kinds(&queue);
        let interval = [kind::TASK, kind::READING];
        let expected = [&interval[..], &interval, &[kind::LOST, kind::READING]].concat();
        assert_eq!(kinds, expected);
        let waiting = queue.waiting();
        assert_eq!((waiting.lost, waiting.told, waiting.bytes), (3, 3, 0));
    }

    #[test]
    fn a_begin_is_never_lost() {
        let queue = Queue::new(Wanted::default(), ROOM);
        queue.push(&chunk(1, ROOM - 200, true));
        queue.push(&chunk(2, 200, false)); // lost, and it goes on
        queue.begin_anew();
        queue.push(&chunk(1, ROOM, true));
        assert_eq!(kinds(&queue).len(), 4);
    }

    #[test]
    fn begins_do_not_pile_up() {
        let queue = Queue::new(Wanted::default(), ROOM);
        for _ in 0..9 {
            queue.begin_anew();
            queue.push(&chunk(3, ROOM, true));
        }
        let bytes = queue.waiting().bytes;
        assert!(bytes < 4 * ROOM, "{bytes} bytes wait");
        queue.begin_anew();
        queue.push(&chunk(0, 0, true));
        queue.push(&chunk(0, 0, true));
        assert_eq!(kinds(&queue), [kind::READING, kind::LOST, kind::READING]);
        assert_eq!(queue.waiting().told, 27);
    }

    #[test]
    fn the_end_comes_after_what_waits() {
        let queue = Queue::new(Wanted::default(), ROOM);
        assert_eq!(queue.pop(Some(Instant::now())), Err(TimedOut));
        queue.push(&chunk(1, 0, true));
        queue.close();
        queue.push(&chunk(1, 0, true));
        assert!(queue.pop(None).expect("in time").is_some());
        assert_eq!(queue.pop(None), Ok(None));
    }
}
