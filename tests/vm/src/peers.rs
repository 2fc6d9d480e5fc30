// SPDX-License-Identifier: GPL-2.0-only
//! Other schedulers in the guest, to compare with. scripts/vm brings those that are there.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::guest::{PATIENCE, scx_ops, scx_state, until};
use crate::load::Load;

/// The program that scenarios ask for, if it is there.
pub const PEER: &str = "scx_bpfland";

/// Is it on PATH?
#[must_use]
pub fn present() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|d| d.join(PEER).exists())
}

/// Calls `then` with the peer in charge of the machine.
pub fn under<T>(then: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut load = Load::shell(&format!("exec {PEER}"))?;
    until(&format!("{PEER} is loaded"), PATIENCE, || {
        load.ensure_runs()?;
        Ok(scx_state()? == "enabled")
    })?;
    let came = then();
    let mine = scx_ops().is_some_and(|o| PEER.ends_with(o.split('_').next().unwrap_or("?")));
    drop(load);
    until(&format!("{PEER} is gone"), PATIENCE, || Ok(scx_state()? == "disabled"))?;
    // what other people's schedulers leave is not ours to judge
    for dir in ["/run/scx", "/var/run/scx"].map(Path::new).iter().filter(|d| d.exists()) {
        let _ = fs::remove_dir_all(dir);
    }
    let came = came?;
    ensure!(mine, "{PEER} was unloaded");
    Ok(came)
}
