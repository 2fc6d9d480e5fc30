// SPDX-License-Identifier: GPL-2.0-only
//! The JSON form, and the schema that documents it (docs/run-schema.json).

use schemars::{JsonSchema, Schema, schema_for};
use serde::Serialize;

use crate::result::Run;
use crate::result::comparison::Comparison;

/// What a file of `--json` holds: a run, or a comparison of runs.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Document<'a> {
    /// Of `lollobrigida run`.
    Run(&'a Run),
    /// Of `lollobrigida compare`.
    Comparison(&'a Comparison),
}

/// Pretty, with a newline at the end.
///
/// # Errors
/// When serialising fails.
pub fn write(document: &Document) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

/// JSON Schema of [`Document`].
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Document)
}
