// SPDX-License-Identifier: GPL-2.0-only
//! policy/load.h: each time has one slot, and the slots' bounds are in order.

use artis_policy::c::{ARTIS_HIST_FIRST, ARTIS_HIST_LAST, ARTIS_HIST_SLOTS};
use artis_policy::hist_slot;
use proptest::prelude::*;

/// Lower bound of a slot, ns, as in src/userspace/model/hist.rs.
fn hist_from(slot: u32) -> u64 {
    if slot == 0 { 0 } else { 1 << (ARTIS_HIST_FIRST + slot - 1) }
}

#[test]
fn slots_begin_where_rust_says() {
    let bounds = [(0, 0), (1, 512), (2, 1_024), (3, 2_048), (4, 4_096), (23, 1 << 31)];
    for (slot, from_ns) in bounds {
        assert_eq!((hist_from(slot), hist_slot(from_ns)), (from_ns, slot), "slot {slot}");
    }
    assert_eq!(hist_from(ARTIS_HIST_SLOTS - 1), 1 << ARTIS_HIST_LAST);
}

#[test]
fn a_bound_belongs_to_the_slot_that_it_begins() {
    for slot in 1..ARTIS_HIST_SLOTS {
        let from_ns = hist_from(slot);
        assert_eq!((hist_slot(from_ns), hist_slot(from_ns - 1)), (slot, slot - 1));
    }
    assert_eq!(hist_slot(u64::MAX), ARTIS_HIST_SLOTS - 1);
}

proptest! {
    #[test]
    fn a_time_lies_in_its_slot(exponent in 0u32..64, low in any::<u64>()) {
        let ns = low >> exponent;
        let slot = hist_slot(ns);
        prop_assert!(hist_from(slot) <= ns);
        prop_assert!(slot + 1 == ARTIS_HIST_SLOTS || ns < hist_from(slot + 1));
    }
}
