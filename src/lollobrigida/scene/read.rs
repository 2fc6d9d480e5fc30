// SPDX-License-Identifier: GPL-2.0-only
//! From a file to a scene.

use std::io::Read;
use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::mistake::{Found, Mistakes};
use super::{Scene, annexb, toml_file};

/// Formats of scenes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The thesis' annex B: blocks in braces.
    AnnexB,
    /// Tables of groups and phases.
    Toml,
}

/// Longest file: 4096 blocks of annex B's format are a fifth of it.
const LONGEST_BYTES: u64 = 1 << 20;

impl Format {
    /// By the file's ending, or if that says nothing, by its first line: annex B's format
    /// begins with a brace.
    #[must_use]
    pub fn guess(path: &Path, text: &str) -> Self {
        let first = || {
            let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_start);
            lines.filter(|l| !l.is_empty()).find(|l| !l.starts_with('#'))
        };
        match path.extension().and_then(|e| e.to_str()) {
            Some("toml") => Self::Toml,
            Some("scn") => Self::AnnexB,
            _ if first().is_none_or(|l| l.starts_with('{')) => Self::AnnexB,
            _ => Self::Toml,
        }
    }
}

/// Reads a scene from a file. Its name is the file's without the ending.
///
/// # Errors
/// When the file cannot be read, or all that is wrong in it: [`Mistakes`]. Show it with
/// [`super::render`].
pub fn read(path: &Path) -> Result<Scene> {
    let shown = path.display();
    let cannot = |e| anyhow!("cannot read the scene {shown}: {e}");
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(cannot)?;
    file.take(LONGEST_BYTES + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LONGEST_BYTES {
        bail!("{shown} is longer than {LONGEST_BYTES} bytes: no scene is; give a scene's file");
    }
    let name = path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(parse_bytes(&name, &shown.to_string(), &bytes, |text| Format::guess(path, text))?)
}

/// Reads a scene from a text. `name` is the scene's, and stands for the file in mistakes.
///
/// # Errors
/// All that is wrong in it.
pub fn parse(name: &str, text: &str, format: Format) -> Result<Scene, Mistakes> {
    parse_bytes(name, name, text.as_bytes(), |_| format)
}

/// As [`parse`], of what may not even be text; `file` is what mistakes name.
pub(super) fn parse_bytes(
    name: &str,
    file: &str,
    bytes: &[u8],
    format: impl Fn(&str) -> Format,
) -> Result<Scene, Mistakes> {
    let mut found = Vec::new();
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            let text = String::from_utf8_lossy(bytes);
            let at = e.valid_up_to();
            let expected = "expected text in UTF-8";
            found.push(Found::new(at..at + 1, "no text", expected));
            return Err(Mistakes::new(file, &text, found));
        }
    };
    let scene = match format(text) {
        Format::AnnexB => annexb::parse(name, text, &mut found),
        Format::Toml => toml_file::parse(name, text, &mut found),
    };
    scene.ok_or_else(|| Mistakes::new(file, text, found))
}
