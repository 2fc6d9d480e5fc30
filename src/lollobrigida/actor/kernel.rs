// SPDX-License-Identifier: GPL-2.0-only
//! The computing of all tasks: pure arithmetic, each step waiting for the one before, so
//! that it is the same work everywhere and neither memory nor width of the CPU help.
//! See docs/decisions/0006-computing-kernel.md.

use std::hint::black_box;

/// Changes whenever [`compute`] does: calibrations of other routines are void. A build
/// without optimisation is another routine.
pub const ROUTINE: &str = if cfg!(debug_assertions) { "1-debug" } else { "1" };

// Knuth's MMIX generator; the xor-shift keeps compilers from folding steps together
const FACTOR: u64 = 6_364_136_223_846_793_005;
const TERM: u64 = 1_442_695_040_888_963_407;

/// Does so many steps from a state and returns the next state.
#[inline(never)]
#[must_use]
pub fn compute(steps: u64, state: u64) -> u64 {
    let mut x = state;
    let mut left = steps;
    // not a range: without optimisation its iterator would be most of the work
    while left != 0 {
        x = x.wrapping_mul(FACTOR).wrapping_add(TERM);
        x ^= x >> 29;
        left -= 1;
    }
    black_box(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_same_work_however_it_is_cut() {
        assert_eq!(compute(1, 0), TERM ^ (TERM >> 29));
        assert_eq!(compute(1000, 7), compute(999, compute(1, 7)));
        assert_eq!(compute(0, 7), 7);
    }
}
