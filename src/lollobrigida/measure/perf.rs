// SPDX-License-Identifier: GPL-2.0-only
//! Opening of perf events, and why it may fail.

use std::{fs, io};

use perf_event::{Builder, Counter};

/// Opens an event that counts also where only user mode may be looked at: without rights
/// (`perf_event_paranoid` 2) the kernel's side must be left out, and what does not look at
/// modes at all (times, switch records) stays whole.
///
/// # Errors
/// The kernel's, see [`why`].
pub fn open_any_mode(builder: &mut Builder) -> io::Result<Counter> {
    builder.enabled(true).include_kernel().include_hv();
    match builder.build() {
        Err(err) if err.kind() == io::ErrorKind::PermissionDenied => {
            builder.exclude_kernel(true).exclude_hv(true).build()
        }
        other => other,
    }
}

/// In words, why perf_event_open(2) failed, and what would make it possible. `paranoid` is
/// the greatest perf_event_paranoid with which it works without rights.
#[must_use]
pub fn why(err: &io::Error, paranoid: i32) -> String {
    match err.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "perf events are not permitted ({err}; /proc/sys/kernel/perf_event_paranoid is {}): \
             run as root or with CAP_PERFMON, or set perf_event_paranoid to {paranoid} or less",
            fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
                .map_or_else(|_| "not there".to_owned(), |text| text.trim().to_owned()),
        ),
        Some(libc::EMFILE | libc::ENFILE) => format!(
            "too many perf events are needed ({err}): raise the limit of open files, ulimit -n"
        ),
        _ => format!("perf events do not work here ({err}): the kernel needs CONFIG_PERF_EVENTS"),
    }
}
