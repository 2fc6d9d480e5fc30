// SPDX-License-Identifier: GPL-2.0-only
//! Where metrics go: the view, a line, the statistics socket. The outlets
//! do not know each other.

pub mod csv;
pub mod describe;
pub mod explain;
pub mod json;
pub mod line;
pub mod metrics;
pub mod perfetto;
pub mod report;
pub mod server;
pub mod top;
mod whole;
mod words;
