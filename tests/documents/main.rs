// SPDX-License-Identifier: GPL-2.0-only
//! What is written down is what the code does.

mod contract;
mod crates;
mod readme;
mod schema;
mod security;
mod statistics;
