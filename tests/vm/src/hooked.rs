// SPDX-License-Identifier: GPL-2.0-only
//! A program that runs while each system call of the machine enters a hook which does nothing
//! (observer/hooked.bpf.c): what the kernel takes for it, whatever the scheduler is.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::skeleton;

#[allow(missing_docs, clippy::all, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/hooked_skel.rs"));
}
use skel::HookedSkelBuilder;

/// Attaches the hook and becomes that program, which holds it until its end.
///
/// # Errors
/// When the kernel does not take the hook, or there is no such program.
pub fn exec(command: &[OsString]) -> Result<Infallible> {
    let skel = skeleton::attach(HookedSkelBuilder::default(), |_| Ok(()))?;
    let link = skel.links.nothing.as_ref().context("the hook has no link")?;
    fcntl(link.as_fd(), FcntlArg::F_SETFD(FdFlag::empty()))?;
    let (program, args) = command.split_first().context("which program?")?;
    Err(Command::new(program).args(args).exec())
        .with_context(|| format!("run {}", program.display()))
}
