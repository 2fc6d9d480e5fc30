// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis export`.

use std::path::PathBuf;

use clap::Args;

/// Turn a recording into a trace for Perfetto
///
/// Open the trace at ui.perfetto.dev, or with any viewer of Chrome's JSON trace events. It has a
/// track for each CPU: with runs if the recording has them (scx_artis record --runs), with
/// evictions and moves if it has those (--events).
#[derive(Debug, Args)]
pub struct Export {
    /// The recording, of scx_artis record
    pub recording: PathBuf,

    /// The trace to write, as JSON; it may be there already, - is stdout
    #[arg(long, value_name = "OUT.json")]
    pub perfetto: PathBuf,
}
