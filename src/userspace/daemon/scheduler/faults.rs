// SPDX-License-Identifier: GPL-2.0-only
//! The hook of page faults: a software event of perf on each CPU (src/bpf/events/entry.bpf.h).

use std::os::fd::IntoRawFd;

use anyhow::{Context, Result};
use libbpf_rs::Link;
use perf_event::Builder;
use perf_event::events::Software;

use crate::abi::skel::BpfSkel;

/// Has BPF see each page fault on `cpus`, all of which are online.
///
/// # Errors
/// When the kernel opens no event, or takes no program for it.
pub(super) fn attach(skel: &BpfSkel<'_>, cpus: impl Iterator<Item = usize>) -> Result<Vec<Link>> {
    let attach = |cpu| -> Result<Link> {
        let event = Builder::new(Software::PAGE_FAULTS)
            .any_pid()
            .one_cpu(cpu)
            .include_kernel()
            .sample_period(1)
            .enabled(true)
            .build()
            .context("perf_event_open(2)")?;
        // the link closes it
        Ok(skel.progs.artis_fault.attach_perf_event(event.into_raw_fd())?)
    };
    cpus.map(|cpu| attach(cpu).with_context(|| format!("watching page faults of CPU {cpu}")))
        .collect()
}
