// SPDX-License-Identifier: GPL-2.0-only
//! Links at the place of an output: root's output must not end in a file that somebody else has chosen.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, readlinkat};
use nix::sys::statfs::{PROC_SUPER_MAGIC, fstatfs};

/// Links that are followed one after the other at most, as path_resolution(7) has it.
const LINKS_MAX: u32 = 40;

/// Where an output goes after links of this user or root.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    /// A link of procfs, which leads to an open file and not to a path: `/dev/stdout`.
    is_open_file: bool,
}

/// Follows the links at `path`, but none of another user. The kernel's fs.protected_symlinks is about
/// open(2) in directories like /tmp only. What is not there is made there.
///
/// # Errors
/// Why a link is not followed.
pub fn follow(path: &Path) -> Result<Place, String> {
    let trusted = [0, nix::unistd::geteuid().as_raw()];
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        // the link itself: by its descriptor it cannot be exchanged any more
        let mut itself = OpenOptions::new();
        itself.read(true).custom_flags((OFlag::O_PATH | OFlag::O_NOFOLLOW).bits());
        let Ok(link) = itself.open(&path) else { return Ok(Place { path, is_open_file: false }) };
        let meta = link.metadata().map_err(|error| error.to_string())?;
        if !meta.is_symlink() {
            return Ok(Place { path, is_open_file: false });
        }
        if !trusted.contains(&meta.uid()) {
            return Err(format!(
                "it is a link of user {}, which may lead to any file of yours: remove it, or name \
                 the file itself",
                meta.uid()
            ));
        }
        if fstatfs(&link).is_ok_and(|fs| fs.filesystem_type() == PROC_SUPER_MAGIC) {
            return Ok(Place { path, is_open_file: true });
        }
        let to = readlinkat(&link, "").map_err(|error| error.to_string())?;
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    Err("links lead from one to the other without end".into())
}

impl Place {
    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it for writing: a file that is there is emptied.
    ///
    /// # Errors
    /// The kernel's; ELOOP: a link has come there meanwhile.
    pub fn create(&self) -> io::Result<File> {
        let flags = if self.is_open_file { OFlag::empty() } else { OFlag::O_NOFOLLOW };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).custom_flags(flags.bits());
        options.open(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_comes_later_is_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let [file, link, place] = ["file", "link", "place"].map(|name| dir.path().join(name));
        fs::write(&file, "old").expect("written");
        symlink("place", &link).expect("linked");
        let followed = follow(&link).expect("an own link");
        assert_eq!(followed.path(), place);
        symlink(&file, &place).expect("linked");
        assert!(followed.create().is_err(), "it is followed");
        assert_eq!(fs::read_to_string(&file).expect("read"), "old");
        fs::remove_file(&place).expect("removed");
        followed.create().expect("made");
        assert!(fs::symlink_metadata(&place).expect("there").is_file());
    }

    #[test]
    fn links_in_a_circle_are_told_and_open_files_stay_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let link = dir.path().join("link");
        symlink("link", &link).expect("linked");
        assert!(follow(&link).expect_err("a circle").contains("without end"));
        let (_reader, writer) = io::pipe().expect("a pipe");
        let open = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        follow(Path::new(&open)).expect("own").create().expect("the pipe");
    }
}
