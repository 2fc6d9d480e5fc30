// SPDX-License-Identifier: GPL-2.0-only
//! Where metrics go: the view, a line, the statistics socket. The outlets
//! do not know each other.

pub mod csv;
pub mod describe;
pub mod json;
pub mod line;
pub mod metrics;
pub mod server;
pub mod top;
