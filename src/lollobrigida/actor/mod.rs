// SPDX-License-Identifier: GPL-2.0-only
//! A task of a scene: a process of its own that prepares, blocks, does its plan on the
//! start signal, and tells what it counted.

pub mod board;
mod clock;
mod futex;
mod histogram;
pub mod report;
