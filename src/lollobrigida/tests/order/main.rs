// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers in turn: when each is loaded and unloaded.

mod drive;
mod schedulers;
mod sequence;
