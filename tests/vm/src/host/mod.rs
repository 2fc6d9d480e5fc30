// SPDX-License-Identifier: GPL-2.0-only
//! The host's side: boots guests, has them run scenarios, and judges what came of it.

pub mod counters;
pub mod failure;
pub mod lanes;
pub mod machine;
pub mod marked;
pub mod noise;
pub mod results;
pub mod trial;
