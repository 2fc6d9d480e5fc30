// SPDX-License-Identifier: GPL-2.0-only
//! Figures of a scenario, in a form that the host reads and a saved report keeps.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

/// A line with this begin holds a [`Figure`], as JSON.
pub const FIGURE: &str = "::figure ";

/// One measured value. A scenario prints each of its figures once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figure {
    /// One word; `default` is in the names of those of the kernel's default scheduler.
    pub name: String,
    /// A number, with the decimals that mean something.
    pub value: String,
    /// One word.
    pub unit: String,
    /// Empty, or the order and the window of a comparison: see [`compared`].
    pub order: String,
}

/// Prints a figure that is compared with no other.
pub fn figure(name: &str, value: impl Display, unit: &str) {
    compared(name, value, unit, "");
}

/// Prints a figure of a comparison. `order` says in which order the two sides took turns, and
/// the window that each of them had: "ABBA, 512 wake-ups each". README quotes no comparison with
/// another order than "ABBA" and "alternating" (tests/documents/readme.rs).
pub fn compared(name: &str, value: impl Display, unit: &str, order: &str) {
    let value = value.to_string();
    let figure = Figure { name: name.into(), value, unit: unit.into(), order: order.into() };
    let line = serde_json::to_string(&figure).expect("four texts are JSON");
    println!("{FIGURE}{line}");
}
