// SPDX-License-Identifier: GPL-2.0-only
//! Loading BPF programs of our own.

use std::mem::MaybeUninit;

use anyhow::{Context, Result};
use libbpf_rs::PrintLevel;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

/// A loaded skeleton, by its builder.
type Loaded<B> = <<B as SkelBuilder<'static>>::Output as OpenSkel<'static>>::Output;

/// Opens a skeleton, has `prepare` set its constants and choose its programs, and loads it.
///
/// # Errors
/// Those of `prepare`, and when the kernel does not take the programs.
pub fn load<B: SkelBuilder<'static>>(
    builder: B,
    prepare: impl FnOnce(&mut B::Output) -> Result<()>,
) -> Result<Loaded<B>> {
    // libbpf's warnings only
    fn print(_: PrintLevel, text: String) {
        eprint!("{text}");
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, print)));
    // lives as long as the process: a skeleton borrows its object
    let object = Box::leak(Box::new(MaybeUninit::uninit()));
    let mut open = builder.open(object).context("open the BPF programs")?;
    prepare(&mut open)?;
    open.load().context("load the BPF programs")
}

/// The same, and attaches its programs.
///
/// # Errors
/// As [`load`], and when a program cannot be attached.
pub fn attach<B: SkelBuilder<'static>>(
    builder: B,
    prepare: impl FnOnce(&mut B::Output) -> Result<()>,
) -> Result<Loaded<B>> {
    let mut skel = load(builder, prepare)?;
    skel.attach().context("attach the BPF programs")?;
    Ok(skel)
}
