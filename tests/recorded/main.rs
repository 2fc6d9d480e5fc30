// SPDX-License-Identifier: GPL-2.0-only
//! What is told of a recording: figures, stories, a page.

#[allow(clippy::unwrap_used)]
mod browser;
mod figures;
mod story;
