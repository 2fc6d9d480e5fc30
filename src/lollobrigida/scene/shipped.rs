// SPDX-License-Identifier: GPL-2.0-only
//! The scenes of the directory scenarios/, which the program carries in itself.

use std::path::Path;

use anyhow::{Result, bail};
use include_dir::{Dir, include_dir};

use super::Scene;
use super::keys::nearest;
use super::read::{Format, parse_bytes, read};

static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// Name and text of each scene that the program carries, by name.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut all: Vec<_> =
        scenes().filter_map(|(name, _, bytes)| Some((name, str::from_utf8(bytes).ok()?))).collect();
    all.sort_unstable();
    all.into_iter()
}

/// Name, path and content; not in order.
fn scenes() -> impl Iterator<Item = (&'static str, &'static Path, &'static [u8])> {
    SCENARIOS.files().filter_map(|file| {
        let ending = file.path().extension()?;
        let name = file.path().file_stem()?.to_str()?;
        (ending == "toml" || ending == "scn").then(|| (name, file.path(), file.contents()))
    })
}

/// The scene that a user names: a file's path, or the name of one that the program carries.
/// A file wins.
///
/// # Errors
/// When there is neither, naming the nearest shipped scene; else as [`read`].
pub fn find(arg: &str) -> Result<Scene> {
    let path = Path::new(arg);
    if path.is_file() {
        return read(path);
    }
    if let Some((name, path, bytes)) = scenes().find(|(name, ..)| *name == arg) {
        let file = format!("{} (shipped)", path.display());
        return Ok(parse_bytes(name, &file, bytes, |text| Format::guess(path, text))?);
    }
    // Whatever else the path may be, opening it says best what is wrong with it.
    if path.exists() {
        return read(path);
    }
    let names: Vec<_> = shipped().map(|(name, _)| name).collect();
    let hint = match nearest(arg, names.iter().copied()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("shipped are {}", names.join(", ")),
    };
    bail!("{arg} is neither a file nor a shipped scene; {hint}")
}
