// SPDX-License-Identifier: GPL-2.0-only
//! What runs and comparisons become: text, JSON, CSV, pages.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod browser;
mod comparison;
mod fixtures;
mod text;
