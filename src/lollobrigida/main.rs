// SPDX-License-Identifier: GPL-2.0-only
//! The program `lollobrigida`.

fn main() {}
