// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis report`.

use std::path::PathBuf;

use clap::Args;

/// Make a page with charts of a recording
///
/// One file that needs nothing else: no script, nothing from the network. It is for screens, dark
/// ones too, and for paper.
#[derive(Debug, Args)]
pub struct Report {
    /// The page to write; it may be there already, - is stdout
    #[arg(value_name = "OUT.html")]
    pub page: PathBuf,

    /// The recording, of scx_artis record
    #[arg(long, value_name = "FILE")]
    pub from: PathBuf,
}
