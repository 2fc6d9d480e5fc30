// SPDX-License-Identifier: GPL-2.0-only
//! Events of perf_event_open(2), for BPF programs that are to run at each.

use std::os::fd::{FromRawFd, OwnedFd};

use anyhow::{Result, ensure};
use libbpf_rs::libbpf_sys::{PERF_FLAG_FD_CLOEXEC, PERF_TYPE_SOFTWARE, perf_event_attr};

/// The software event `config` (PERF_COUNT_SW_*) on this CPU, in user mode and in the kernel, sampled
/// once in `period` of it.
///
/// # Errors
/// Those of perf_event_open(2).
pub fn software(config: u32, cpu: u32, period: u64) -> Result<OwnedFd> {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: size_of::<perf_event_attr>().try_into()?,
        config: config.into(),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = period;
    // SAFETY: attr is initialized and outlives the call; the rest are plain integers.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attr,
            -1,
            libc::c_int::try_from(cpu)?,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };
    ensure!(fd >= 0, "perf_event_open: {}", std::io::Error::last_os_error());
    // SAFETY: a descriptor that the kernel has just given to us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd.try_into()?) })
}
