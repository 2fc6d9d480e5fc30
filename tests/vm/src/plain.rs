// SPDX-License-Identifier: GPL-2.0-only
//! Another sched_ext scheduler, with nothing of its own (observer/plain.bpf.c).

use anyhow::{Context, Result, ensure};

use crate::guest::{PATIENCE, scx_ops, scx_state, until};
use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/plain_skel.rs"));
}
use skel::PlainSkelBuilder;

/// Its name, as the kernel tells it.
pub const NAME: &str = "plain";

/// Calls `then` with it in charge of the machine.
///
/// # Errors
/// Those of `then`; and when it cannot be loaded, or is not in charge any more after that.
pub fn under<T>(then: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut skel = skeleton::load(PlainSkelBuilder::default(), |_| Ok(()))?;
    let link = skel.maps.plain.attach_struct_ops().context("attach the scheduler")?;
    until("the other scheduler is in charge", PATIENCE, || Ok(scx_state()? == "enabled"))?;
    let came = then();
    let mine = scx_ops().is_some_and(|ops| ops == NAME);
    drop(link);
    drop(skel);
    until("the other scheduler is gone", PATIENCE, || Ok(scx_state()? == "disabled"))?;
    let came = came?;
    ensure!(mine, "the other scheduler was unloaded");
    Ok(came)
}
