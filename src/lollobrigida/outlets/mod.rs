// SPDX-License-Identifier: GPL-2.0-only
//! Runs and comparisons for people and programs. Each outlet is a pure function of
//! [`crate::result::Run`] or [`crate::result::comparison::Comparison`].

pub mod csv;
pub mod html;
pub mod json;
pub mod table;
pub mod units;
