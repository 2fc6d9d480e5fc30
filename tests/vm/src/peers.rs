// SPDX-License-Identifier: GPL-2.0-only
//! Other schedulers in the guest, to compare with. scripts/vm brings those that are there.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::guest::{PATIENCE, scx_ops, scx_state, until};
use crate::load::Load;

/// Programs that scenarios ask for, if they are there.
pub const PEERS: [&str; 2] = ["scx_bpfland", "scx_rusty"];

/// Scenarios that ask for them.
pub const WANTED_BY: [&str; 2] = ["bad_args", "annex_b"];

/// Is there such a program on PATH?
#[must_use]
pub fn present(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|d| d.join(name).exists())
}

/// Calls `then` with the peer in charge of the machine.
pub fn under<T>(name: &str, then: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut load = Load::shell(&format!("exec {name}"))?;
    until(&format!("{name} is loaded"), PATIENCE, || {
        load.ensure_runs()?;
        Ok(scx_state()? == "enabled")
    })?;
    let came = then();
    let mine = scx_ops().is_some_and(|o| name.ends_with(o.split('_').next().unwrap_or("?")));
    drop(load);
    until(&format!("{name} is gone"), PATIENCE, || Ok(scx_state()? == "disabled"))?;
    // what other people's schedulers leave is not ours to judge
    for dir in ["/run/scx", "/var/run/scx"].map(Path::new).iter().filter(|d| d.exists()) {
        let _ = fs::remove_dir_all(dir);
    }
    let came = came?;
    ensure!(mine, "{name} was unloaded");
    Ok(came)
}
