// SPDX-License-Identifier: GPL-2.0-only
//! What a page fault takes, and how much more of it with a hook: touches of pages that are not there.

use std::io::Error;

use artis_vm::faults::{Hook, Way};

use crate::figures::{head, measure, row};
use crate::other::{PAGE, map, unmap};

const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

pub fn print(times: usize) {
    head("fault", "");
    let nothing = measure(times, CLOCK, || ());
    let bare = touches(times);
    row("fault", "touch of a new page, no hook", &nothing, &bare);
    for (way, what) in [
        (Way::Perf, "more with perf's event"),
        (Way::Tracepoints, "more with tracepoints"),
        (Way::BtfTracepoints, "more with tracepoints (BTF)"),
    ] {
        let hook = Hook::attach(way).unwrap_or_else(|e| panic!("{way:?}: {e:#}"));
        let seen = || hook.seen().expect("the program's count");
        let before = seen();
        let all = touches(times);
        let seen = seen() - before;
        assert!(seen >= times as u64, "{way:?}: the program saw {seen} of {times} faults");
        row("fault", what, &bare, &all);
    }
}

/// Times of touches of one new page each, ascending.
fn touches(times: usize) -> Vec<i64> {
    let pages = 2 * (times + 1); // more than `measure` runs
    let bytes = pages * PAGE;
    let at = map(pages, 0) as *mut libc::c_void;
    // SAFETY: of the mapping just made; one page at a time, not a huge one.
    let small = unsafe { libc::madvise(at, bytes, libc::MADV_NOHUGEPAGE) };
    assert_eq!(small, 0, "madvise: {}", Error::last_os_error());
    let mut next = 0;
    let all = measure(times, CLOCK, || {
        assert!(next < bytes);
        // SAFETY: within the mapping.
        unsafe { at.cast::<u8>().add(next).write_volatile(1) };
        next += PAGE;
    });
    unmap(at.addr(), pages);
    all
}
