// SPDX-License-Identifier: GPL-2.0-only
//! Measuring, and the rows of the tables.

use libc::timespec;

/// A clock, in ns.
pub fn now(clock: libc::clockid_t) -> i64 {
    let mut t = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: t is a valid timespec.
    unsafe { libc::clock_gettime(clock, &raw mut t) };
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

/// Time of `times` runs, ascending, after some to warm up.
pub fn measure(times: usize, clock: libc::clockid_t, mut run: impl FnMut()) -> Vec<i64> {
    let mut all: Vec<i64> = (0..times + times / 10 + 1)
        .map(|_| {
            let began = now(clock);
            run();
            now(clock) - began
        })
        .collect();
    all.drain(..=times / 10);
    all.sort_unstable();
    all
}

pub fn head(class: &str, what: &str) {
    println!("{class:<9} {what:<31} {:>8} {:>8} {:>8} {:>8}", "min", "median", "99 %", "max");
}

/// `nothing`: the same without what is measured.
pub fn row(class: &str, what: &str, nothing: &[i64], all: &[i64]) {
    let at = |i: usize| all[i.min(all.len() - 1)] - nothing[nothing.len() / 2];
    let (median, p99) = (at(all.len() / 2), at(all.len() * 99 / 100));
    println!("{class:<9} {what:<31} {:>8} {median:>8} {p99:>8} {:>8}", at(0), at(all.len()));
}
