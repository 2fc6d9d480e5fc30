// SPDX-License-Identifier: GPL-2.0-only
//! Scenes as files: both formats, their mistakes, what is shipped.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod convert;
mod fuzz;
mod invalid;
mod read;
mod reference;
mod shipped;
