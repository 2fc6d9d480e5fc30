// SPDX-License-Identifier: GPL-2.0-only
//! The program by its command line.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod runs;
mod words;
