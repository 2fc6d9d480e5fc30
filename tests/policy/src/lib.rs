// SPDX-License-Identifier: GPL-2.0-only
//! The pure policy functions of `src/bpf/policy`, callable from Rust.
//!
//! Types and functions are those of the headers, which document them, without
//! the prefix `artis_`; units are in the names.

/// What bindgen makes of policy.h: every function, type and constant by its C name.
#[allow(missing_docs, reason = "the C headers document them")]
#[allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
pub mod c {
    include!(concat!(env!("OUT_DIR"), "/policy.rs"));
}

pub mod replay;

pub use c::{
    artis_facts as Facts, artis_history as History, artis_load as Load, artis_look as Look,
    artis_policy as Policy, artis_rouse_in as RouseIn, artis_rt_share as RtShare,
    artis_rt1_budget as Rt1Budget, artis_run as Run,
};

/// The unit of a share (ARTIS_SHARE_ONE).
pub const SHARE_ONE: u32 = 1 << c::ARTIS_SHARE_SHIFT;

/// Functions of the headers that are safe to call with references to their structs.
macro_rules! functions {
    ($($name:ident = $c:ident($($arg:ident: $type:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[doc = concat!("`", stringify!($c), "()`.")]
        pub fn $name($($arg: $type),*) $(-> $ret)? {
            // SAFETY: plain values, and references to live structs of C's layout (by bindgen) that
            // the function does not keep; it writes only through those that are exclusive.
            unsafe { c::$c($($arg),*) }
        }
    )*};
}

functions! {
    before = artis_before(a: u64, b: u64) -> bool;
    rt1_order = artis_rt1_order(priority: u32, now_ns: u64) -> u64;
    is_rt1_order = artis_is_rt1_order(order: u64) -> bool;
    rt1_charge = artis_rt1_charge(budget: &mut Rt1Budget, policy: &Policy, now_ns: u64, run_ns: u64) -> bool;
    rt1_throttled = artis_rt1_throttled(budget: &Rt1Budget, policy: &Policy, now_ns: u64) -> bool;
    hist_slot = artis_hist_slot(ns: u64) -> u32;
    share_decay = artis_share_decay(avg: u32, dt_ns: u64) -> u32;
    share_at = artis_share_at(share: &RtShare, now_ns: u64) -> u32;
    share_switch = artis_share_switch(share: &mut RtShare, now_ns: u64, in_rt: bool);
    call_section = artis_call_section(class: u8, arg0: u64, arg1: u64, arg2: u64, poll_fds_max: u32) -> u32;
    inv_weight = artis_inv_weight(weight: u32) -> u32;
    weight_in = artis_weight_in(weight: u32, cgroup_weight: u32) -> u32;
    vtime_of = artis_vtime_of(policy: &Policy, run_ns: u64, inv_weight: u32) -> u64;
    vtime_clamp = artis_vtime_clamp(policy: &Policy, vtime: u64, clock: u64, inv_weight: u32) -> u64;
    first_advance = artis_first_advance(policy: &Policy, vtime: u64, clock: u64) -> u64;
    after = artis_after(a: u64, b: u64) -> u64;
    clock_step = artis_clock_step(run_ns: u64, weight: u64, nr_cpus: u32) -> u64;
    clock_catch_up = artis_clock_catch_up(policy: &Policy, clock: u64, vtime: u64) -> u64;
    vtime_ran = artis_vtime_ran(policy: &Policy, vtime: u64, clock: u64) -> u64;
    is_well_ahead =
        artis_is_well_ahead(policy: &Policy, ahead: u64, behind: u64, offset: u64) -> bool;
    passed_order = artis_passed_order(order: u64, passed_ns: u64) -> u64;
    offset_next = artis_offset_next(policy: &Policy, ahead: u64, behind: u64, offset: u64) -> u64;
    slice_nrt = artis_slice_nrt(policy: &Policy, weight: u64, nr_cpus: u32) -> u64;
    preempts = artis_preempts(policy: &Policy, vtime: u64, curr_vtime: u64) -> bool;
    past_power = artis_past_power(past: u32, n: u32) -> u64;
    period = artis_period(period: u64) -> u64;
    least_next = artis_least_next(least_ns: u64, interval_ns: u64) -> u64;
    period_next = artis_period_next(period: u64, sum_ns: u64, n: u32, past: u32) -> u64;
    history_note = artis_history_note(history: &mut History, policy: &Policy, run: &Run);
    is_far = artis_is_far(policy: &Policy, since_ns: u64, period_ns: u64) -> bool;
    is_calm = artis_is_calm(policy: &Policy, history: &History, now_ns: u64) -> bool;
    power_of = artis_power_of(share_avg: u32, capacity: u32) -> u64;
    m_of_power = artis_m_of_power(power: u64) -> u32;
    load_of = artis_load_of(weight: u64, m: u32) -> u64;
    relieves = artis_relieves(from: &Load, to: &Load, weight: u32) -> bool;
    imbalanced = artis_imbalanced(e: &Load, r: &Load, pct: u32) -> bool;
    may_use_rt = artis_may_use_rt(facts: &Facts) -> bool;
    queue_of = artis_queue_of(facts: &Facts) -> u32;
    may_wait = artis_may_wait(facts: &Facts, queue: u32, place: u32) -> bool;
    rouse = artis_rouse(facts: &RouseIn) -> u32;
    next = artis_next(look: &Look) -> u32;
}

/// M of one CPU ([`m_of_power`] of [`power_of`]).
#[must_use]
pub fn m_of(share_avg: u32, capacity: u32) -> u32 {
    m_of_power(power_of(share_avg, capacity))
}
