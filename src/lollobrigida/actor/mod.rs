// SPDX-License-Identifier: GPL-2.0-only
//! A task of a scene: a process of its own that prepares, blocks, does its plan on the
//! start signal, and tells what it counted.

/// Does one task's plan. (Room `actor` brings it.)
///
/// # Errors
/// Until then, always.
pub fn main(board_fd: i32, task: usize) -> anyhow::Result<()> {
    anyhow::bail!("no actor yet for task {task} on {board_fd}")
}
pub mod board;
mod clock;
mod futex;
mod histogram;
pub mod report;
