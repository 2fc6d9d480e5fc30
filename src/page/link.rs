// SPDX-License-Identifier: GPL-2.0-only
//! Links at the place of an output: root's output must not end in a file that somebody else has chosen.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why the link at `path` is not to be followed: its owner is neither this user nor root. `None`: it
/// may be, or there is none. The kernel's fs.protected_symlinks is about open(2) in directories like
/// /tmp only.
pub fn why_not_followed(path: &Path) -> Option<String> {
    let owner = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?.uid();
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    (!trusted.contains(&owner)).then(|| {
        format!(
            "it is a link of user {owner}, which may lead to any file of yours: remove it, or name \
             the file itself"
        )
    })
}
