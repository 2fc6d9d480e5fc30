// SPDX-License-Identifier: GPL-2.0-only
//! Ways to have a BPF program see page faults at addresses of user mode, for what each costs
//! (docs/decisions/0028-fault-hook.md).

use std::os::fd::AsRawFd;

use anyhow::{Context, Result};
use libbpf_rs::Link;
use libbpf_rs::libbpf_sys::PERF_COUNT_SW_PAGE_FAULTS;

use crate::cpus::Cpus;
use crate::event::software;
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/faults_skel.rs"));
}
use skel::{FaultsSkel, FaultsSkelBuilder};

/// Where the program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To perf's software event of page faults on each CPU, sampled each time.
    Perf,
    /// To the tracepoints page_fault_user and page_fault_kernel, with the record that perf gets.
    Tracepoints,
    /// To the same without that record (tp_btf).
    BtfTracepoints,
}

/// An attached program.
pub struct Hook {
    skel: FaultsSkel<'static>,
    _links: Vec<Link>,
}

impl Hook {
    /// Attaches it.
    ///
    /// # Errors
    /// When the kernel takes no program, or opens no event.
    pub fn attach(way: Way) -> Result<Self> {
        let skel = skeleton::load(FaultsSkelBuilder::default(), |_| Ok(()))?;
        let progs = &skel.progs;
        let links = match way {
            Way::Perf => { Cpus::online()?.iter() }
                .map(|cpu| {
                    let event = software(PERF_COUNT_SW_PAGE_FAULTS, cpu, 1)?;
                    let link = progs.by_perf.attach_perf_event(event.as_raw_fd())?;
                    std::mem::forget(event); // the link closes it
                    Ok(link)
                })
                .collect::<Result<Vec<_>>>()?,
            Way::Tracepoints => vec![progs.user.attach()?, progs.kernel.attach()?],
            Way::BtfTracepoints => vec![progs.user_btf.attach()?, progs.kernel_btf.attach()?],
        };
        Ok(Self { skel, _links: links })
    }

    /// Faults seen so far.
    ///
    /// # Errors
    /// When the program has no data, which is a fault of its source.
    pub fn seen(&self) -> Result<u64> {
        let data = self.skel.maps.bss_data.as_deref().context("the program has no bss")?;
        // SAFETY: a valid, aligned integer of ours; volatile, since the program writes it
        Ok(unsafe { std::ptr::from_ref(&data.seen).read_volatile() })
    }
}
