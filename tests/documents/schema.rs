// SPDX-License-Identifier: GPL-2.0-only
//! docs/stats-schema.json is what the code says, and what it writes fits.

use std::path::Path;
use std::{env, fs};

use scx_artis::outlets::json;

#[test]
fn the_schema_file_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/stats-schema.json");
    let fresh = serde_json::to_string_pretty(&json::schema()).expect("JSON") + "\n";
    if env::var_os("ARTIS_UPDATE").is_some() {
        fs::write(&path, &fresh).expect("written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == fresh,
        "docs/stats-schema.json is not what the code says: run this test with ARTIS_UPDATE=1 and \
         commit the file; if a field was renamed or removed, raise outlets::json::SCHEMA"
    );
}
