// SPDX-License-Identifier: GPL-2.0-only
//! Holds a CPU so that nobody else gets it and the scheduler is not asked, by a BPF program that
//! switches preemption off (observer/hold.bpf.c).

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libbpf_rs::ProgramInput;

use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/hold_skel.rs"));
}
use skel::{HoldSkel, HoldSkelBuilder};

/// The loaded program.
pub struct Hold {
    skel: HoldSkel<'static>,
}

impl Hold {
    /// Loads it; it holds for `time`.
    pub fn load(time: Duration) -> Result<Self> {
        let skel = skeleton::load(HoldSkelBuilder::default(), |open| {
            let data = open.maps.bss_data.as_deref_mut().context("the program has no bss")?;
            data.hold_ns = u64::try_from(time.as_nanos())?;
            Ok(())
        })?;
        Ok(Self { skel })
    }

    /// Holds the CPU on which the caller runs.
    pub fn hold(&self) -> Result<()> {
        let out = self.skel.progs.hold.test_run(ProgramInput::default())?;
        ensure!(out.return_value == 0, "the program that holds returned {}", out.return_value);
        Ok(())
    }
}
