// SPDX-License-Identifier: GPL-2.0-only
//! What the reports of scx_artis and of lollobrigida have in common: pages that need nothing
//! else, for the screen (bright, dark, narrow) and for paper, without a script. Of it, `page.css`,
//! `charts.html` and `grid.html` are included by their templates. And where they may be written.

#[cfg(feature = "browser")]
pub mod browser;
pub mod chart;
pub mod link;
pub mod palette;
