// SPDX-License-Identifier: GPL-2.0-only
//! A ring whose memory is loom's: the C text of policy/handover.h calls back here for each access.

use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::sync::atomic::{AtomicU32, AtomicU64};
use std::ffi::c_void;

/// Slots of the ring as handover.c compiles it.
pub const SLOTS: usize = 2;

/// A bug put between the C text and the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    None,
    /// The stores that publish (of tail and head) order nothing.
    RelaxedPublish,
    /// The loads that look for the other side's progress order nothing.
    RelaxedLook,
    /// The operations on the claim order nothing: the next reader may not see how far the last came.
    RelaxedClaim,
    /// Whoever comes may read.
    ClaimIgnored,
    /// The slot is given back before it is read.
    HeadFirst,
    /// A full ring is written all the same.
    FullIgnored,
    /// Whoever releases the claim is not told that somebody came meanwhile.
    NobodyTold,
}

/// Stands where C expects a `struct artis_ring`. C computes the addresses of fields and hands them
/// to the callbacks below, which find the atomics by them; it never touches `c`.
#[repr(C, align(4096))]
pub struct Ring {
    c: [u8; 1024],
    head: AtomicU32,
    claim: AtomicU32,
    tail: AtomicU32,
    slot: [AtomicU64; SLOTS],
    plant: Plant,
}

#[link(name = "artis_handover", kind = "static")]
unsafe extern "C-unwind" {
    fn checked_push(ring: *const c_void, entry: u64) -> bool;
    fn checked_claim(ring: *const c_void) -> bool;
    fn checked_release(ring: *const c_void) -> bool;
    fn checked_pop(ring: *const c_void, entry: *mut u64) -> bool;
    fn checked_is_empty(ring: *const c_void) -> bool;
    safe fn checked_offset(field: u32) -> u64;
}

impl Ring {
    pub fn new(plant: Plant) -> Self {
        let slot = std::array::from_fn(|_| AtomicU64::new(0));
        let [head, claim, tail] = std::array::from_fn(|_| AtomicU32::new(0));
        Self { c: [0; 1024], head, claim, tail, slot, plant }
    }

    fn as_c(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }

    pub fn push(&self, entry: u64) -> bool {
        // SAFETY: C only computes addresses inside `c`, which is larger than its struct (checked in
        // `Place::of`), and accesses them through the callbacks. The same holds for the rest.
        unsafe { checked_push(self.as_c(), entry) }
    }

    pub fn claim(&self) -> bool {
        // SAFETY: see `push`.
        unsafe { checked_claim(self.as_c()) }
    }

    pub fn release(&self) -> bool {
        // SAFETY: see `push`.
        unsafe { checked_release(self.as_c()) }
    }

    pub fn pop(&self) -> Option<u64> {
        let mut entry = 0;
        // SAFETY: see `push`; `entry` is written before C returns.
        unsafe { checked_pop(self.as_c(), &mut entry) }.then_some(entry)
    }

    pub fn is_empty(&self) -> bool {
        // SAFETY: see `push`.
        unsafe { checked_is_empty(self.as_c()) }
    }
}

/// The field that an address means.
enum Place {
    Head,
    Claim,
    Tail,
    Slot(usize),
}

impl Place {
    /// The ring and the field of it that `ptr`, computed by C, means.
    fn of<'a>(ptr: *const c_void) -> (&'a Ring, Self) {
        let offset = ptr.addr() % align_of::<Ring>();
        assert!(offset < 1024, "outside of the struct");
        // SAFETY: C computed `ptr` from the address of a live Ring, which is aligned to 4096.
        let ring = unsafe { &*ptr.map_addr(|addr| addr - offset).cast::<Ring>() };
        let field = (0..4).rev().find(|&f| checked_offset(f) as usize <= offset);
        let place = match field {
            Some(3) => Self::Slot((offset - checked_offset(3) as usize) / 8),
            // head, claim and tail do not lie in this order
            _ if offset == checked_offset(0) as usize => Self::Head,
            _ if offset == checked_offset(1) as usize => Self::Claim,
            _ => Self::Tail,
        };
        (ring, place)
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn checker_load(ptr: *const c_void, acquire: bool) -> u64 {
    let (ring, place) = Place::of(ptr);
    let order = if acquire && ring.plant != Plant::RelaxedLook { Acquire } else { Relaxed };
    match place {
        // the writer's only look at the head is an acquire
        Place::Head if acquire && ring.plant == Plant::FullIgnored => {
            ring.tail.load(Relaxed).into()
        }
        Place::Head => ring.head.load(order).into(),
        Place::Claim => ring.claim.load(order).into(),
        Place::Tail => ring.tail.load(order).into(),
        Place::Slot(i) => {
            if ring.plant == Plant::HeadFirst {
                ring.head.store(ring.head.load(Relaxed) + 1, Release);
            }
            ring.slot[i].load(order)
        }
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn checker_store(ptr: *const c_void, val: u64, release: bool) {
    let (ring, place) = Place::of(ptr);
    let order = if release && ring.plant != Plant::RelaxedPublish { Release } else { Relaxed };
    match place {
        Place::Head if ring.plant == Plant::HeadFirst => {}
        Place::Head => ring.head.store(val as u32, order),
        Place::Claim => ring.claim.store(val as u32, order),
        Place::Tail => ring.tail.store(val as u32, order),
        Place::Slot(i) => ring.slot[i].store(val, order),
    }
}

/// C adds to the claim only.
#[unsafe(no_mangle)]
extern "C-unwind" fn checker_fetch_add(ptr: *const c_void, val: u32) -> u32 {
    let (ring, _) = Place::of(ptr);
    let order = if ring.plant == Plant::RelaxedClaim { Relaxed } else { AcqRel };
    let old = ring.claim.fetch_add(val, order);
    if ring.plant == Plant::ClaimIgnored { 0 } else { old }
}

/// C exchanges the claim only.
#[unsafe(no_mangle)]
extern "C-unwind" fn checker_xchg(ptr: *const c_void, val: u32) -> u32 {
    let (ring, _) = Place::of(ptr);
    let order = if ring.plant == Plant::RelaxedClaim { Relaxed } else { AcqRel };
    let old = ring.claim.swap(val, order);
    if matches!(ring.plant, Plant::NobodyTold | Plant::ClaimIgnored) { 1 } else { old }
}
