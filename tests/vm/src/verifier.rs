// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel says of the loaded programs of the scheduler: how much the
//! verifier had to look at, and how big they are.

use std::collections::BTreeSet;

use anyhow::Result;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use serde::Serialize;

/// One program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Its name, of which the kernel keeps 15 letters.
    pub name: String,
    /// Its type, in libbpf's words.
    pub kind: String,
    /// Instructions that the verifier processed.
    pub verified_insns: u32,
    /// Size after the verifier's rewriting, bytes.
    pub xlated_bytes: usize,
    /// Size of the machine code, bytes; 0: not compiled.
    pub jited_bytes: usize,
}

/// Ids of all programs in the kernel.
#[must_use]
pub fn ids() -> BTreeSet<u32> {
    ProgInfoIter::default().map(|p| p.id).collect()
}

/// The programs in the kernel that are not in `known`, by name.
pub fn programs_besides(known: &BTreeSet<u32>) -> Result<Vec<Program>> {
    let opts = ProgInfoQueryOptions::default()
        .include_xlated_prog_insns(true)
        .include_jited_prog_insns(true);
    let mut all: Vec<Program> = ProgInfoIter::with_query_opts(opts)
        .filter(|p| !known.contains(&p.id))
        .map(|p| Program {
            name: p.name.to_string_lossy().into_owned(),
            kind: format!("{:?}", p.ty),
            verified_insns: p.verified_insns,
            xlated_bytes: p.xlated_prog_insns.len(),
            jited_bytes: p.jited_prog_insns.len(),
        })
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}
