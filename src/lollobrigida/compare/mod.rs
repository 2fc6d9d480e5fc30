// SPDX-License-Identifier: GPL-2.0-only
//! The same scene under several schedulers: which ones, in which order, and the walk
//! through that order which always gives the machine back.

pub mod describe;
pub mod drive;
pub mod order;
pub mod rehearse;
pub mod under;
