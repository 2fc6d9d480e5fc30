// SPDX-License-Identifier: GPL-2.0-only
//! A CPU that takes long to go idle (observer/idling.bpf.c).

use anyhow::{Context, Result};

use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/idling_skel.rs"));
}
use skel::{IdlingSkel, IdlingSkelBuilder};

/// The attached programs.
pub struct Idling {
    skel: IdlingSkel<'static>,
}

impl Idling {
    /// Loads and attaches them: CPU `cpu` is to be held.
    ///
    /// # Errors
    /// When the kernel does not take the programs.
    pub fn attach(cpu: u32) -> Result<Self> {
        let skel = skeleton::attach(IdlingSkelBuilder::default(), |open| {
            let data = open.maps.bss_data.as_deref_mut().context("the programs have no bss")?;
            data.held_cpu = cpu;
            Ok(())
        })?;
        Ok(Self { skel })
    }

    /// The next time that the CPU goes idle, or stays idle if `stays`, it is held until the task `pid` has
    /// left its CPU, for 1 s at most.
    ///
    /// # Errors
    /// None that is known.
    pub fn arm(&mut self, pid: u32, stays: bool) -> Result<()> {
        let bss = self.bss()?;
        bss.stays = u32::from(stays);
        (bss.pid, bss.waits, bss.waited, bss.idled, bss.armed) = (pid, 0, 0, 0, 1);
        Ok(())
    }

    /// Is it held, or was it?
    ///
    /// # Errors
    /// None that is known.
    pub fn has_held(&mut self) -> Result<bool> {
        Ok(self.bss()?.armed == 0)
    }

    /// How often it idled while the task waited; `None`: that was gone when the hold ended.
    ///
    /// # Errors
    /// None that is known.
    pub fn idled(&mut self) -> Result<Option<u32>> {
        let bss = self.bss()?;
        Ok((bss.waited == 1).then_some(bss.idled))
    }

    fn bss(&mut self) -> Result<&mut skel::types::bss> {
        self.skel.maps.bss_data.as_deref_mut().context("the programs have no bss")
    }
}
