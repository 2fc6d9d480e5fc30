// SPDX-License-Identifier: GPL-2.0-only
//! The reference page docs/scenes.md: prose from reference.md, tables from [`super::keys`].

use std::fmt::Write;

use super::keys::{self, Place};
use super::value::Kind;

/// The page, in Markdown.
#[must_use]
pub fn reference() -> String {
    let tables = [
        ("scene", Place::Scene),
        ("group", Place::Group),
        ("phase", Place::Phase),
        ("block", Place::Block),
    ];
    let prose = include_str!("reference.md").to_owned();
    tables.into_iter().fold(prose, |page, (name, place)| {
        page.replace(&format!("<!-- keys: {name} -->\n"), &table(place))
    })
}

fn table(place: Place) -> String {
    let mut out = String::from("| key | value | default | meaning |\n|---|---|---|---|\n");
    for key in keys::of(place) {
        let value = match key.kind {
            Kind::Tables => "tables".into(),
            kind => kind.expected().replace('|', "\\|"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{}` | {value} | {} | {} |", key.name, key.default, key.meaning);
    }
    out
}
