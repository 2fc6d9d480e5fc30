// SPDX-License-Identifier: GPL-2.0-only
//! What may make the figures worth less. Each warning says what was seen, why it matters
//! and what to do; the codes are fixed.

pub mod machine;
pub mod seen;
