// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers in turn: who is put in charge when, and taken out again.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod drive;
mod schedulers;
mod sequence;
