// SPDX-License-Identifier: GPL-2.0-only
//! From scenes to plans, and to tasks that do them.
#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

mod calls;
mod help;
mod links;
mod plan;
mod run;
