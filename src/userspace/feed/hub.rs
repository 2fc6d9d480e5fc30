// SPDX-License-Identifier: GPL-2.0-only
//! The daemon's end of the stream: who watches, what they want, and a bounded
//! queue for each. Nobody who is slow slows the daemon or another viewer.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::Wanted;
use super::frame::{Frame, kind};
use super::queue::{Chunk, Queue};
use super::stream::{Carrier, More, Stream};
use crate::exit::Failure;

/// Viewers at a time, those inside the daemon among them.
const VIEWERS_MAX: usize = 16;

/// All who watch. Shared by the run loop, which sends, and the threads of the viewers.
#[derive(Debug)]
pub struct Hub {
    queues: Mutex<Vec<Arc<Queue>>>,
    closed: AtomicBool,
    tell: Sender<()>,
    told: Receiver<()>,
}

/// One who watches, until it is dropped.
#[derive(Debug)]
pub struct Viewer {
    hub: Arc<Hub>,
    queue: Arc<Queue>,
}

/// To whom something is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Those whose stream has begun.
    Begun,
    /// Those who wait for the begin of theirs, which this is.
    New,
}

impl Default for Hub {
    fn default() -> Self {
        let (tell, told) = bounded(1);
        Self { queues: Mutex::default(), closed: AtomicBool::new(false), tell, told }
    }
}

impl Hub {
    /// Gets a message when somebody came or left.
    pub fn changes(&self) -> Receiver<()> {
        self.told.clone()
    }

    /// Adds a viewer for which `room` bytes may wait. `None`: there are as many viewers as may be,
    /// or the daemon ends.
    pub fn subscribe(self: &Arc<Self>, wanted: Wanted, room: usize) -> Option<Viewer> {
        let queue = Arc::new(Queue::new(wanted.within_bounds(), room));
        let mut queues = self.queues();
        if queues.len() >= VIEWERS_MAX || self.closed.load(Ordering::Relaxed) {
            return None;
        }
        queues.push(Arc::clone(&queue));
        drop(queues);
        self.say_changed();
        Some(Viewer { hub: Arc::clone(self), queue })
    }

    /// What all of them want together: the shortest interval, and whatever one wants.
    /// `None`: nobody watches.
    pub fn wanted(&self) -> Option<Wanted> {
        let queues = self.queues();
        let open = queues.iter().filter(|queue| !queue.is_closed()).map(|queue| queue.wanted);
        open.reduce(|a, b| Wanted {
            interval: a.interval.min(b.interval),
            events: a.events || b.events,
            runs: a.runs || b.runs,
        })
    }

    /// Does somebody wait for the begin of his stream?
    pub fn has_new(&self) -> bool {
        self.queues().iter().any(|queue| queue.is_new())
    }

    /// Another scheduler begins: all streams begin anew.
    pub fn begin_anew(&self) {
        self.queues().iter().for_each(|queue| queue.begin_anew());
    }

    /// Sends whole frames, of which each viewer gets what it wants. `ends_interval`: the last
    /// of them is a READING.
    pub fn send(&self, to: To, frames: &[u8], ends_interval: bool) {
        let mut chunks: BTreeMap<(bool, bool), Chunk> = BTreeMap::new();
        for queue in self.queues().iter().filter(|queue| queue.is_new() == (to == To::New)) {
            let Wanted { events, runs, .. } = queue.wanted;
            let chunk = chunks
                .entry((events, runs))
                .or_insert_with(|| Chunk::new(select(frames, events, runs), ends_interval));
            queue.push(chunk);
        }
    }

    /// Sends everybody away: what waits for them still reaches them.
    pub fn dismiss(&self) {
        self.queues().iter().for_each(|queue| queue.close());
    }

    /// The same, and lets nobody in any more.
    pub fn close(&self) {
        // before the lock is taken: who subscribes later sees it
        self.closed.store(true, Ordering::Relaxed);
        self.dismiss();
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Arc<Queue>>> {
        // whoever panicked with it left it whole: entries come and go at once
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say_changed(&self) {
        // full: it is told already
        let _ = self.tell.try_send(());
    }
}

/// The frames that a viewer wants.
fn select(frames: &[u8], events: bool, runs: bool) -> Vec<u8> {
    let mut selected = Vec::with_capacity(frames.len());
    let mut rest = frames;
    // what BPF writes is whole
    while let Ok(Some((frame, after))) = Frame::split(rest) {
        let wanted = match frame.kind {
            kind::EVICTION | kind::MOVE => events,
            kind::RUN => runs,
            _ => true,
        };
        if wanted {
            selected.extend(frame.bytes);
        }
        rest = after;
    }
    selected
}

impl Viewer {
    /// What waits for it, or comes before `deadline`.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Its stream, inside this process.
    pub fn into_stream(self) -> Stream {
        Stream::new(self)
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.queue.close();
        self.hub.queues().retain(|queue| !Arc::ptr_eq(queue, &self.queue));
        self.hub.say_changed();
    }
}

impl Carrier for Viewer {
    fn more(&mut self, buffer: &mut Vec<u8>, deadline: Option<Instant>) -> Result<More, Failure> {
        Ok(match self.queue.pop(deadline) {
            Ok(Some(bytes)) => {
                buffer.extend(&*bytes);
                More::Bytes
            }
            Ok(None) => More::End,
            Err(_) => More::TimedOut,
        })
    }
}
