// SPDX-License-Identifier: GPL-2.0-only
//! `scx_artis report OUT.html --from RECORDING`: one page that needs nothing else, for the screen
//! (bright, dark, narrow) and for paper. No script.

mod chart;
mod gather;
mod page_of;
#[cfg(test)]
mod tests;

use std::io::Write;

use anyhow::Context;

pub use gather::{Known, Recorded, Share, Span, Times};
pub use page_of::page;

use super::whole::{create, each_interval};
use crate::cli::Report;
use crate::exit::Failure;

/// Answers `scx_artis report`.
///
/// # Errors
/// When the recording cannot be read or the page not be written.
pub fn execute(args: &Report, out: &mut dyn Write) -> Result<(), Failure> {
    let mut recorded = Recorded::default();
    each_interval(&args.from, |interval| {
        recorded.add(interval);
        Ok(())
    })?;
    let file = args.from.file_name().unwrap_or(args.from.as_os_str()).to_string_lossy();
    let page = page(&recorded, &file)?;
    let mut out = create(&args.page, out)?;
    let written = out.write_all(page.as_bytes()).and_then(|()| out.flush());
    Ok(written.with_context(|| format!("writing {}", args.page.display()))?)
}
