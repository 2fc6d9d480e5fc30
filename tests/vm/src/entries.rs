// SPDX-License-Identifier: GPL-2.0-only
//! An observer of what a few tasks do (observer/entries.bpf.c), to judge by what
//! scx_artis tells of each task.

use anyhow::{Context, Result, ensure};
use libbpf_rs::{MapCore, MapFlags};

use crate::classes;
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/entries_skel.rs"));
}
use skel::{EntriesSkel, EntriesSkelBuilder};

/// Words of `struct obs_entries`.
const WORDS: usize = 6;

/// What one task did since it is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Did {
    /// Endangering system calls.
    pub calls: u64,
    /// Page faults of user mode.
    pub faults: u64,
    /// Wake-ups after which it ran.
    pub waits: u64,
    /// Sum of the times from there to running, ns.
    pub wait_ns: u64,
    /// The longest of them, ns.
    pub wait_max_ns: u64,
}

/// The attached programs.
pub struct Entries {
    skel: EntriesSkel<'static>,
}

impl Entries {
    /// Loads and attaches; watches nobody yet.
    pub fn attach() -> Result<Self> {
        let skel = skeleton::attach(EntriesSkelBuilder::default(), |open| {
            let ro = open.maps.rodata_data.as_deref_mut().context("the observer has no rodata")?;
            ro.poll_fds_max = classes::POLL_FDS_MAX;
            ro.call_class = classes::table(false)?;
            let atomic = tracepoints_are_atomic()?;
            open.progs.entry_call_btf.set_autoload(atomic);
            open.progs.entry_call.set_autoload(!atomic);
            Ok(())
        })?;
        Ok(Self { skel })
    }

    /// Watches this task from now on.
    pub fn watch(&mut self, pid: u32) -> Result<()> {
        let nothing = [0; WORDS * 8];
        Ok(self.skel.maps.entries.update(&pid.to_ne_bytes(), &nothing, MapFlags::ANY)?)
    }

    /// What a watched task did.
    pub fn did(&self, pid: u32) -> Result<Did> {
        let bytes = self.skel.maps.entries.lookup(&pid.to_ne_bytes(), MapFlags::ANY)?;
        let bytes = bytes.with_context(|| format!("task {pid} is not watched"))?;
        ensure!(bytes.len() == WORDS * 8, "the observer's map is of another size");
        let mut words = bytes.chunks_exact(8).map(|w| w.try_into().map_or(0, u64::from_ne_bytes));
        let mut next = || words.next().unwrap_or(0);
        Ok(Did {
            calls: next(),
            faults: next(),
            waits: next(),
            wait_ns: next(),
            wait_max_ns: next(),
        })
    }
}

/// Do programs on tracepoints run with preemption off? They do to 7.0.
fn tracepoints_are_atomic() -> Result<bool> {
    let release = crate::guest::line("/proc/sys/kernel/osrelease")?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let mut next = || numbers.next().and_then(Result::ok);
    let version = (next().context("the kernel has no version")?, next().unwrap_or(0));
    Ok(version < (7, 1))
}
