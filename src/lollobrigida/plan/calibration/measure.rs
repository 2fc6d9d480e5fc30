// SPDX-License-Identifier: GPL-2.0-only
//! Measures the computing kernel on the CPU of the calling thread.

use crate::actor::{kernel, monotonic_ns};

/// The CPU's frequency has risen after so long.
const WARM_UP_NS: u64 = 50_000_000;
/// Short enough to be left alone by the tick at most times, long enough for any clock.
const BURST_NS: u64 = 500_000;
const BURSTS: usize = 101;

/// Steps in a microsecond in the best burst, and how much slower the median was.
pub(super) fn speed() -> (f64, f64) {
    let begin_ns = monotonic_ns();
    let (mut steps, mut x, mut best_ns) = (1024, 1, 0);
    while monotonic_ns() - begin_ns < WARM_UP_NS || best_ns < BURST_NS {
        (best_ns, x) = time(steps, x);
        if best_ns < BURST_NS {
            steps *= 2;
        }
    }
    let mut times = [0; BURSTS];
    for ns in &mut times {
        (*ns, x) = time(steps, x);
    }
    times.sort_unstable();
    let (best, median) = (times[0].max(1) as f64, times[BURSTS / 2] as f64);
    (steps as f64 * 1000.0 / best, (median - best) / best)
}

fn time(steps: u64, x: u64) -> (u64, u64) {
    let begin_ns = monotonic_ns();
    let x = kernel::compute(steps, x);
    (monotonic_ns() - begin_ns, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_foretells_a_burst_as_far_as_the_machine_is_quiet() {
        let (steps_per_us, spread) = speed();
        assert!(steps_per_us > 0.0 && spread >= 0.0);
        let steps = (steps_per_us * 1000.0) as u64;
        let best = (0..50).map(|_| time(steps, 1).0).min().unwrap_or(0) as f64;
        // a virtual CPU's own speed varies: a wrong unit or factor would be far off
        assert!((best / 1e6 - 1.0).abs() < 0.5, "{best} ns for what should be 1 ms");
    }
}
