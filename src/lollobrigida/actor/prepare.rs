// SPDX-License-Identifier: GPL-2.0-only
//! Makes the process fit for measuring: its name, its timers, its memory. What is not
//! permitted is noted, not fatal.

use std::ffi::CString;

use anyhow::{Context, Result, ensure};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use super::board::STOP_SIGNAL;

/// The kernel keeps so many bytes of a name.
const NAME_BYTES: usize = 15;
/// More stack than the measured part needs.
const STACK_BYTES: usize = 64 << 10;

/// Binds the process to its parent and names it `group.nth`.
pub(super) fn identity(runner: u32, group: &str, nth: u32) -> Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL).context("the task cannot be bound to the runner")?;
    ensure!(
        std::os::unix::process::parent_id() == runner,
        "the runner has ended, or did not start this task itself: \
         a task is started by `lollobrigida run`, not by hand"
    );
    let name = CString::new(name(group, nth)).context("the group's name holds a zero byte")?;
    prctl::set_name(&name).context("the task cannot be named")?;
    Ok(())
}

/// `group.nth`, the group cut short where the kernel would cut the number.
fn name(group: &str, nth: u32) -> String {
    let end = format!(".{nth}");
    let mut keep = group.len().min(NAME_BYTES - end.len());
    while !group.is_char_boundary(keep) {
        keep -= 1;
    }
    format!("{}{end}", &group[..keep])
}

/// Sleeps end on time, and early when the run is stopped. Ctrl-C is the runner's business.
pub(super) fn signals() -> Result<()> {
    extern "C" fn nothing(_: i32) {}
    prctl::set_timerslack(1).context("the timer slack cannot be set")?;
    for (signal, handler) in
        [(STOP_SIGNAL, SigHandler::Handler(nothing)), (Signal::SIGINT, SigHandler::SigIgn)]
    {
        let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(signal, &action) }
            .with_context(|| format!("{signal} cannot be handled"))?;
    }
    Ok(())
}

/// Brings in all memory that is mapped and keeps it. To be called when everything is
/// allocated. Returns what could not be had.
pub(super) fn memory() -> Vec<String> {
    touch_stack();
    let mut notes = Vec::new();
    // ONFAULT: the board has room that stays empty, and is not to be filled
    let flags =
        MlockAllFlags::MCL_CURRENT.union(MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT));
    if let Err(e) = mlockall(flags) {
        notes.push(format!(
            "memory touched but not locked ({e}): the kernel may take pages away under memory \
             pressure; raise RLIMIT_MEMLOCK or run as root"
        ));
    }
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => maps.lines().filter_map(region).for_each(populate),
        Err(e) => notes.push(format!(
            "/proc/self/maps cannot be read ({e}): code may be paged in while it is measured"
        )),
    }
    notes
}

#[inline(never)]
fn touch_stack() {
    let mut stack = [0u8; STACK_BYTES];
    for byte in stack.iter_mut().step_by(1024) {
        *byte = 1;
    }
    std::hint::black_box(&stack);
}

/// A mapping of our own to bring in: begin, length and how.
fn region(line: &str) -> Option<(usize, usize, i32)> {
    let mut words = line.split_whitespace();
    let (begin, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let path = words.nth(3).unwrap_or("");
    let begin = usize::from_str_radix(begin, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    // only the board is shared; the kernel's own pages need nothing
    let ours = rights.ends_with('p') && !path.starts_with("[v");
    let advice = match rights.get(..2)? {
        "rw" => libc::MADV_POPULATE_WRITE,
        "r-" => libc::MADV_POPULATE_READ,
        _ => return None,
    };
    ours.then_some((begin, end - begin, advice))
}

/// Brings pages in before they are used.
pub(super) fn populate((begin, bytes, advice): (usize, usize, i32)) {
    // A kernel before 5.14 does not know the advice: the pages come at first use, as the
    // rehearsal of each task's work does for most.
    // SAFETY: brings pages of our own mappings in and changes nothing in them.
    unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(begin), bytes, advice) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_keep_their_number() {
        assert_eq!(name("audio", 3), "audio.3");
        assert_eq!(name("a-rather-long-group", 1234), "a-rather-l.1234");
        assert_eq!(name("ééééééééé", 7), "éééééé.7");
    }

    #[test]
    fn the_board_and_the_kernel_s_pages_are_left_alone() {
        let text = "5580-55a0 r-xp 00000000 fe:00 12 /usr/bin/x";
        assert_eq!(region(text), Some((0x5580, 0x20, libc::MADV_POPULATE_READ)));
        assert_eq!(region("1-2 rw-p 0 00:00 0 [heap]"), Some((1, 1, libc::MADV_POPULATE_WRITE)));
        assert_eq!(region("1-2 rw-s 0 00:01 3 /memfd:lollobrigida (deleted)"), None);
        assert_eq!(region("1-2 r--p 0 00:00 0 [vvar]"), None);
        assert_eq!(region("1-2 ---p 0 00:00 0"), None);
    }
}
