// SPDX-License-Identifier: GPL-2.0-only
//! What lies where on the board. Everything but the plan's text follows from the plan, so
//! that both sides compute it alike.
//!
//! header | a slot per task | links, each with its stamps and items | scratch | a report
//! per task | the plan as JSON

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::plan::{Link, Plan};

/// Pages, and more than the cache lines of any machine: neighbours do not disturb.
const PAGE: usize = 4096;
/// Room for a report: pages that are not written to cost nothing.
pub(super) const REPORT_BYTES: usize = 1 << 20;
/// Written by the `lock` call.
const SCRATCH_BYTES: usize = 64 << 10;
/// First word of a board; changes with its layout.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"lollobr2");

/// A value that shares its cache lines with no other.
#[repr(C, align(256))]
pub(super) struct Alone<T>(pub T);

/// The words that all share.
#[repr(C)]
pub(super) struct Header {
    pub magic: AtomicU64,
    /// Bytes of the plan's JSON, at the board's end.
    pub plan_bytes: AtomicU64,
    /// The process that made the board.
    pub runner: AtomicU32,
    /// How to read time by the TSC; `tsc_ns_per_tick_q32` is 0 where the vDSO does.
    pub tsc_zero: AtomicU64,
    pub tsc_zero_ns: AtomicU64,
    pub tsc_ns_per_tick_q32: AtomicU64,
    /// How many tasks are ready, or failed before. Futex of the runner.
    pub readied: Alone<AtomicU32>,
    /// 1 from the start signal on. Futex of the tasks.
    pub start: Alone<AtomicU32>,
    /// CLOCK_MONOTONIC of the signal, written before it.
    pub start_ns: AtomicU64,
    /// 1: leave off. Polled, so alone.
    pub stop: Alone<AtomicU32>,
    /// How many tasks have ended. Futex of the runner.
    pub ended: Alone<AtomicU32>,
    /// 1: the tasks may go. Futex of the tasks.
    pub release: Alone<AtomicU32>,
}

/// One task's words.
#[repr(C, align(256))]
pub(super) struct Slot {
    /// [`super::State`].
    pub state: AtomicU32,
    /// 0 until it is known.
    pub pid: AtomicU32,
    /// Bytes of its report; 0: none yet.
    pub report_bytes: AtomicU64,
}

/// One side of a link.
#[repr(C, align(256))]
pub(super) struct Side {
    /// Items that went through here.
    pub count: AtomicU64,
    /// Changes with every item; its lowest bit says that the other side waits. Futex of the
    /// other side.
    pub word: AtomicU32,
    /// No more items will go through here.
    pub closed: AtomicU32,
}

/// A link's fixed part; the stamps (a u64 per item) and the items follow.
#[repr(C)]
pub(super) struct LinkWords {
    pub posted: Side,
    pub taken: Side,
}

/// Offsets in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub slots: usize,
    /// By link.
    pub links: Vec<usize>,
    pub scratch: usize,
    pub reports: usize,
    pub plan: usize,
}

impl Layout {
    /// The layout for a plan.
    pub fn of(plan: &Plan) -> Self {
        let slots = size_of::<Header>().next_multiple_of(PAGE);
        let mut end = slots + plan.tasks.len() * size_of::<Slot>();
        let mut links = Vec::with_capacity(plan.links.len());
        for link in &plan.links {
            let begin = end.next_multiple_of(PAGE);
            links.push(begin);
            end = begin + link_bytes(link);
        }
        let scratch = end.next_multiple_of(PAGE);
        let reports = scratch + SCRATCH_BYTES;
        Self { slots, links, scratch, reports, plan: reports + plan.tasks.len() * REPORT_BYTES }
    }
}

/// What a link takes: its words, and for each item that fits a stamp and its bytes.
pub(super) fn link_bytes(link: &Link) -> usize {
    let per_item = size_of::<u64>() + link.item_bytes as usize;
    size_of::<LinkWords>() + link.items as usize * per_item
}
