// SPDX-License-Identifier: GPL-2.0-only
//! Where metrics go: a live table, a line, the statistics socket. The outlets
//! do not know each other.

pub mod explain;
pub mod line;
pub mod perfetto;
pub mod report;
pub mod server;
pub mod table;
mod whole;
mod words;
