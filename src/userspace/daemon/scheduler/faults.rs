// SPDX-License-Identifier: GPL-2.0-only
//! The hook of page faults: a software event of perf on each CPU (src/bpf/events/entry.bpf.h).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::fd::IntoRawFd;

use anyhow::{Context, Result};
use libbpf_rs::Link;
use nix::errno::Errno;
use perf_event::events::Software;
use perf_event::{Builder, Counter};

use crate::abi::skel::BpfSkel;

/// The hooks, by CPU.
#[derive(Default)]
pub(super) struct Faults(BTreeMap<usize, Link>);

impl Faults {
    /// Has BPF see each page fault on those of these CPUs that are online. Another one is on its way:
    /// the partition is made anew when it has gone or come.
    ///
    /// # Errors
    /// When the kernel opens no event, or takes no program for it.
    pub fn watch(
        &mut self,
        skel: &BpfSkel<'_>,
        cpus: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        for cpu in cpus {
            if let Entry::Vacant(of) = self.0.entry(cpu) {
                let event = match event_on(cpu) {
                    Err(error) if error.raw_os_error() == Some(Errno::ENODEV as i32) => continue,
                    event => event.context("perf_event_open(2)"),
                };
                // the link closes the event
                let link = event.and_then(|event| {
                    Ok(skel.progs.artis_fault.attach_perf_event(event.into_raw_fd())?)
                });
                of.insert(link.with_context(|| format!("watching page faults of CPU {cpu}"))?);
            }
        }
        Ok(())
    }

    /// Ends it on CPUs that are `gone`: the event of a CPU that was offline is void.
    pub fn forget(&mut self, gone: impl Fn(usize) -> bool) {
        self.0.retain(|cpu, _| !gone(*cpu));
    }
}

fn event_on(cpu: usize) -> io::Result<Counter> {
    Builder::new(Software::PAGE_FAULTS)
        .any_pid()
        .one_cpu(cpu)
        .include_kernel()
        .sample_period(1)
        .enabled(true)
        .build()
}
