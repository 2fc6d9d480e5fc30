// SPDX-License-Identifier: GPL-2.0-only
//! The hook of page faults: a software event of perf on each CPU (src/bpf/events/entry.bpf.h).

use std::os::fd::IntoRawFd;

use anyhow::{Context, Result};
use libbpf_rs::Link;
use perf_event::Builder;
use perf_event::events::Software;

use super::Scheduler;

impl Scheduler<'_> {
    /// Has BPF see each page fault on the CPUs of the partition, all of which are online.
    ///
    /// # Errors
    /// When the kernel opens no event, or takes no program for it.
    pub(super) fn watch_faults(&mut self) -> Result<()> {
        let ids: Vec<_> = self.cpu_ids().collect();
        for cpu in ids {
            if !self.faults.contains_key(&cpu) {
                let link = self.watch_faults_of(cpu);
                let link = link.with_context(|| format!("watching page faults of CPU {cpu}"))?;
                self.faults.insert(cpu, link);
            }
        }
        Ok(())
    }

    fn watch_faults_of(&self, cpu: usize) -> Result<Link> {
        let event = Builder::new(Software::PAGE_FAULTS)
            .any_pid()
            .one_cpu(cpu)
            .include_kernel()
            .sample_period(1)
            .enabled(true)
            .build()
            .context("perf_event_open(2)")?;
        // the link closes it
        Ok(self.skel.progs.artis_fault.attach_perf_event(event.into_raw_fd())?)
    }
}
