// SPDX-License-Identifier: GPL-2.0-only
//! The pure policy functions of `src/bpf/policy`, callable from Rust.
//!
//! Each wrapper has the contract of the C function it names; units are in the
//! parameter names. See the headers for formulas and sources.

/// Mirror of `struct artis_rt_share` (src/bpf/abi/stat.h); its layout is checked in `build`-time C
/// by use: a mismatch shows as wrong numbers in every share test.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtShare {
    /// Average at `updated_ns`, unit 1 / [`SHARE_ONE`].
    pub avg: u32,
    /// 1 while an rt/dl task runs.
    pub in_rt: u32,
    /// Time of the last switch, ns.
    pub updated_ns: u64,
    /// All time in rt/dl tasks up to `updated_ns`, ns.
    pub total_ns: u64,
}

/// The unit of a share (ARTIS_SHARE_ONE).
pub const SHARE_ONE: u32 = 1 << 30;
/// enum artis_section: user mode.
pub const SECTION_NONE: u32 = 0;
/// enum artis_section: a call of the sleeping class.
pub const SECTION_SLEEPING: u32 = 1;
/// enum artis_section: an endangering call.
pub const SECTION_CALL: u32 = 2;
/// enum artis_section: a page fault of user mode.
pub const SECTION_FAULT: u32 = 3;

/// enum artis_place: what the placement rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// NRT CPUs only.
    Nrt,
    /// An idle RT CPU, if there is one.
    RtIdle,
    /// Stay on the RT CPU.
    RtStay,
}

/// The facts `artis_place()` decides by (struct artis_place_in).
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "each field is documented in policy/place.h under its name")]
pub struct PlaceIn {
    pub section: u32,
    pub woken: bool,
    pub calm: bool,
    pub kernel: bool,
    pub unsettled: bool,
    pub on_rt: bool,
    pub put_back: bool,
    pub displaced: bool,
    pub ahead: bool,
}

#[allow(missing_docs, reason = "the C headers document them; re-exported under their C names")]
mod c {
    use super::RtShare;
    unsafe extern "C" {
        pub safe fn shim_share_decay(avg: u32, dt_ns: u64) -> u32;
        pub fn shim_share_at(s: *const RtShare, now_ns: u64) -> u32;
        pub fn shim_share_switch(s: *mut RtShare, now_ns: u64, in_rt: bool);
        pub safe fn shim_call_section(class: u8, arg0: u64, arg1: u64, fds: u32) -> u32;
        pub safe fn shim_quiet_after(quiet: u64, run: u64, attempted: bool) -> u64;
        pub safe fn shim_is_calm(quiet_ns: u64, quiet_run_ns: u64) -> bool;
        pub safe fn shim_inv_weight(weight: u32) -> u32;
        pub safe fn shim_weight_in(weight: u32, cgroup: u32) -> u32;
        pub safe fn shim_vtime_of(run_ns: u64, inv: u32) -> u64;
        pub safe fn shim_vtime_clamp(
            credit: u64,
            lead: u64,
            vtime: u64,
            clock: u64,
            inv: u32,
        ) -> u64;
        pub safe fn shim_clock_next(clock: u64, vtime: u64, elapsed_ns: u64) -> u64;
        pub safe fn shim_slice_nrt(slice: u64, min: u64, waiting: u32) -> u64;
        pub safe fn shim_preempts(margin: u64, vtime: u64, curr: u64) -> bool;
        pub safe fn shim_place(section: u32, bits: u32) -> u32;
    }
}

pub use c::{
    shim_call_section as call_section, shim_clock_next as clock_next,
    shim_inv_weight as inv_weight, shim_is_calm as is_calm, shim_preempts as preempts,
    shim_quiet_after as quiet_after, shim_share_decay as share_decay, shim_slice_nrt as slice_nrt,
    shim_vtime_clamp as vtime_clamp, shim_vtime_of as vtime_of, shim_weight_in as weight_in,
};

impl RtShare {
    /// The average at `now_ns`, unit 1 / [`SHARE_ONE`].
    pub fn at(&self, now_ns: u64) -> u32 {
        // SAFETY: `self` is a live struct of the layout that the C side reads, and is not kept.
        unsafe { c::shim_share_at(self, now_ns) }
    }

    /// A context switch at `now_ns`; `in_rt`: an rt/dl task runs from now on.
    pub fn switch(&mut self, now_ns: u64, in_rt: bool) {
        // SAFETY: as in `at`, and the borrow is exclusive.
        unsafe { c::shim_share_switch(self, now_ns, in_rt) }
    }
}

/// `artis_place()`.
pub fn place(facts: PlaceIn) -> Place {
    let flags = [
        facts.woken,
        facts.calm,
        facts.kernel,
        facts.unsettled,
        facts.on_rt,
        facts.put_back,
        facts.displaced,
        facts.ahead,
    ];
    let bits = flags.iter().enumerate().fold(0, |bits, (i, &set)| bits | (u32::from(set) << i));
    match c::shim_place(facts.section, bits) {
        0 => Place::Nrt,
        1 => Place::RtIdle,
        _ => Place::RtStay,
    }
}
