// SPDX-License-Identifier: GPL-2.0-only
//! An observer of CPUs that go offline (observer/leaving.bpf.c).

use anyhow::{Context, Result, bail, ensure};
use libbpf_rs::ProgramInput;

use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/leaving_skel.rs"));
}
use skel::{LeavingSkel, LeavingSkelBuilder};

/// The attached programs.
pub struct Leaving {
    skel: LeavingSkel<'static>,
}

impl Leaving {
    /// Loads and attaches.
    ///
    /// # Errors
    /// When the kernel does not take the programs.
    pub fn attach() -> Result<Self> {
        Ok(Self { skel: skeleton::attach(LeavingSkelBuilder::default(), |_| Ok(()))? })
    }

    /// A CPU that is offline has left no kick behind.
    ///
    /// # Errors
    /// When it has.
    pub fn ensure_no_kick(&mut self, cpu: u32) -> Result<()> {
        self.bss()?.asked_cpu = cpu;
        match self.skel.progs.pending_kick.test_run(ProgramInput::default())?.return_value {
            0 => Ok(()),
            1 => bail!("CPU {cpu}, which is offline, has left a kick that no interrupt will take"),
            other => bail!("pending_kick() for CPU {cpu}: {other}"),
        }
    }

    /// No thread of a CPU had a slice that ends when it ran there after ops.cpu_offline.
    ///
    /// # Errors
    /// When one had, or none ran there at all.
    pub fn ensure_no_slice(&mut self) -> Result<u64> {
        let (runs, sliced) = (self.bss()?.nr_runs, self.bss()?.nr_sliced);
        ensure!(runs > 0, "no thread of a CPU ran there after ops.cpu_offline");
        ensure!(sliced == 0, "{sliced} of {runs} times the slice of a leaving CPU's thread ends");
        Ok(runs)
    }

    /// No CPU took a task from the run queue of one that went, when that may have waited for it to be
    /// empty. Returns how many CPUs went.
    ///
    /// # Errors
    /// When one did, or no CPU went.
    pub fn ensure_none_taken(&mut self) -> Result<u64> {
        let (taken, gone) = (self.bss()?.nr_taken, self.bss()?.nr_gone);
        ensure!(gone > 0, "no CPU was seen to go");
        ensure!(
            taken == 0,
            "{taken} tasks were taken from the run queues of {gone} CPUs that went"
        );
        Ok(gone)
    }

    fn bss(&mut self) -> Result<&mut skel::types::bss> {
        self.skel.maps.bss_data.as_deref_mut().context("the observer has no bss")
    }
}
