// SPDX-License-Identifier: GPL-2.0-only
//! Watching: what BPF keeps and writes while somebody looks
//! (src/bpf/report/{door,tally,walk}.bpf.h).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use libbpf_rs::{Link, RingBuffer, RingBufferBuilder};

use super::{Scheduler, run_with, sample};
use crate::abi::bindings as abi;
use crate::abi::skel::BpfSkel;

/// Records that are taken from the ring buffer at a time: whoever writes faster than this is
/// read must not keep the daemon from all else.
const DRAIN_MAX: usize = 1 << 17;

/// What exists while somebody watches.
pub(super) struct Watch {
    ring: RingBuffer<'static>,
    /// What the ring buffer's callback has taken.
    taken: Rc<RefCell<Vec<u8>>>,
    /// Wake-ups and context switches are looked at while these exist.
    _links: [Link; 2],
}

impl Watch {
    fn begin(skel: &BpfSkel<'_>) -> Result<Self> {
        let taken = Rc::new(RefCell::new(Vec::new()));
        let to = Rc::clone(&taken);
        let mut ring = RingBufferBuilder::new();
        ring.add(&skel.maps.records, move |record| {
            to.borrow_mut().extend(record);
            0
        })?;
        let ring = ring.build().context("mapping the ring buffer")?;
        // of a watch before
        ring.consume().context("emptying the ring buffer")?;
        taken.borrow_mut().clear();
        let waking = skel.progs.artis_sched_waking.attach();
        let waking = waking.context("attaching to wake-ups (sched_waking)")?;
        let switch = skel.progs.artis_sched_switch.attach();
        let switch = switch.context("attaching to context switches (sched_switch)")?;
        Ok(Self { ring, taken, _links: [waking, switch] })
    }
}

/// What is to be kept and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Evictions and moves, one by one.
    pub events: bool,
    /// Runs, one by one.
    pub runs: bool,
}

impl Watched {
    fn bits(self) -> u32 {
        let bit = |wanted: bool, bit| if wanted { bit } else { 0 };
        abi::artis_watch_ARTIS_WATCH_TASKS
            | bit(self.events, abi::artis_watch_ARTIS_WATCH_EVENTS)
            | bit(self.runs, abi::artis_watch_ARTIS_WATCH_RUNS)
    }
}

impl Scheduler<'_> {
    /// Has BPF keep totals of each task, and write what `watched` says; or nothing any more.
    ///
    /// # Errors
    /// When the kernel refuses. Then nobody watches.
    pub fn watch(&mut self, watched: Option<Watched>) -> Result<()> {
        let Some(watched) = watched else {
            self.set_watching(0, false)?;
            self.watch = None;
            return Ok(());
        };
        let anew = self.watch.is_none();
        if anew {
            self.watch = Some(Watch::begin(&self.skel)?);
        }
        self.set_watching(watched.bits(), anew)
    }

    /// Has a record of each task written that ran since its last one, or of each task.
    ///
    /// # Errors
    /// When the program cannot be run.
    pub fn walk(&self, all: bool) -> Result<()> {
        let walk = &self.skel.progs.artis_walk;
        run_with(walk, &mut u32::from(all)).context("walking over the tasks")?;
        Ok(())
    }

    /// Appends the records that have come to `frames`.
    ///
    /// # Errors
    /// When the ring buffer cannot be read.
    pub fn drain(&self, frames: &mut Vec<u8>) -> Result<()> {
        let Some(watch) = &self.watch else { return Ok(()) };
        let read = watch.ring.consume_raw_n(DRAIN_MAX);
        if read < 0 {
            return Err(std::io::Error::from_raw_os_error(-read))
                .context("reading the ring buffer");
        }
        frames.append(&mut watch.taken.borrow_mut());
        Ok(())
    }

    /// The time of the scheduler's clock, ns.
    ///
    /// # Errors
    /// When the sampling program cannot be run.
    pub fn now_ns(&self) -> Result<u64> {
        sample(&self.skel)
    }

    /// When the scheduler began, by the same clock.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn set_watching(&mut self, bits: u32, anew: bool) -> Result<()> {
        let data = self.skel.maps.data_watch_data.as_mut();
        let data = data.context("the BPF object cannot be watched")?;
        // SAFETY: aligned, and valid for as long as the exclusive borrow of `data`; BPF reads
        // them meanwhile.
        let (seq, watching) = unsafe {
            (AtomicU32::from_ptr(&mut data.watch_seq), AtomicU32::from_ptr(&mut data.watching))
        };
        if anew {
            seq.fetch_add(1, Ordering::Relaxed);
        }
        // who sees that there is a watch sees that it is a new one
        watching.store(bits, Ordering::Release);
        Ok(())
    }
}
