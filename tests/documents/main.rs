// SPDX-License-Identifier: GPL-2.0-only
//! What is written down is what the code does.

mod contract;
mod readme;
mod schema;
mod security;
mod statistics;
