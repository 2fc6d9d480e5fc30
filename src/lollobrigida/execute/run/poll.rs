// SPDX-License-Identifier: GPL-2.0-only
//! ppoll(2): poll(2) knows milliseconds only.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Sleeps until one of the files is readable or closed at its other end, or `patience` is
/// over. Tells for each whether it is. A signal ends the sleep, too.
///
/// # Errors
/// The kernel's: too many files, or no memory.
pub fn poll(fds: &[RawFd], patience: Option<Duration>) -> io::Result<Vec<bool>> {
    let pollfd = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = fds.iter().map(pollfd).collect();
    let time = patience.map(|patience| libc::timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the list has the length that is told, and lives as the time does; no mask.
    let ready = unsafe {
        libc::ppoll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, time, std::ptr::null())
    };
    if ready < 0 {
        let err = io::Error::last_os_error();
        if err.kind() != io::ErrorKind::Interrupted {
            return Err(err);
        }
        return Ok(vec![false; fds.len()]);
    }
    Ok(polled.iter().map(|polled| polled.revents != 0).collect())
}
