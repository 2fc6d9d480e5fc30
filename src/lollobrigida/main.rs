// SPDX-License-Identifier: GPL-2.0-only
//! The program `lollobrigida`.

use anyhow::{Context, Result};

/// Only `actor --board-fd N --task I`.
fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|arg| arg.parse::<usize>().ok());
    let (board, task) = number(2).zip(number(4)).context("usage: actor --board-fd N --task I")?;
    lollobrigida::actor::main(i32::try_from(board)?, task)
}
