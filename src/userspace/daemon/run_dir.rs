// SPDX-License-Identifier: GPL-2.0-only
//! /run/scx_artis: a lock that lives exactly as long as the daemon, and the
//! files that remember what is to be put back.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;

use crate::exit::Failure;

/// Where the daemon keeps its state; gone after a reboot, as what it is about.
pub const RUN_DIR: &str = "/run/scx_artis";
const LOCK: &str = "lock";

/// The state directory, locked: no other scx_artis runs while this exists.
/// Dropping it removes what is in it but for a saved state.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl RunDir {
    /// Makes the directory at `path` if need be, and locks it.
    ///
    /// # Errors
    /// When another scx_artis holds the lock, or the directory cannot be used.
    pub fn lock(path: &Path) -> Result<Self, Failure> {
        loop {
            let mut dir = DirBuilder::new();
            let made = dir.recursive(true).mode(0o700).create(path);
            made.with_context(|| format!("making {}", path.display()))?;
            let name = path.join(LOCK);
            let file = match own_file(&name) {
                // its last user has just removed the directory
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file.with_context(|| format!("opening {}", name.display()))?,
            };
            let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => lock,
                Err((_, Errno::EWOULDBLOCK)) => return Err(occupied(&name)),
                Err((_, errno)) => {
                    return Err(anyhow!("locking {}: {errno}", name.display()).into());
                }
            };
            // a file that was removed meanwhile locks nobody out
            let ours = lock.metadata().context("looking at the lock")?.ino();
            if fs::metadata(&name).is_ok_and(|named| named.ino() == ours) {
                return Ok(Self { path: path.to_owned(), _lock: lock });
            }
        }
    }

    /// Lets others than root come to the sockets in it if `gid` is not root's group: who may
    /// use which is up to their own modes.
    ///
    /// # Errors
    /// When its mode cannot be changed.
    pub fn open_for(&self, gid: u32) -> Result<(), Failure> {
        let mode = if gid == 0 { 0o700 } else { 0o711 };
        fs::set_permissions(&self.path, Permissions::from_mode(mode))
            .with_context(|| format!("changing the mode of {}", self.path.display()))?;
        Ok(())
    }

    /// The file of [`super::kernel_threads::KernelThreads`].
    pub fn kernel_threads(&self) -> PathBuf {
        self.path.join("kernel_threads.json")
    }

    /// The file of [`super::preempt::Switch`].
    pub fn saved_preempt(&self) -> PathBuf {
        self.path.join("preempt.json")
    }
}

/// Writes into the file `state`, which is its owner's only, what is to be put back, all or nothing: a
/// half-written file must not be found after a crash.
///
/// # Errors
/// When it cannot be written.
pub fn save(state: &Path, saved: &impl Serialize) -> anyhow::Result<()> {
    let draft = state.with_extension("draft");
    let text = serde_json::to_string(saved)?;
    own_file(&draft)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&draft, state))
        .with_context(|| format!("writing {}", state.display()))
}

/// The text of the file `state`; `None`: there is none, so nothing is to be put back.
///
/// # Errors
/// When it cannot be read.
pub fn saved(state: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(state) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", state.display())),
    }
}

/// Removes the file `state`: what it was about is put back.
///
/// # Errors
/// When it cannot be removed.
pub fn forget(state: &Path) -> anyhow::Result<()> {
    fs::remove_file(state).with_context(|| format!("removing {}", state.display()))
}

/// An empty file that only its owner may open, whatever the umask is, and whatever was there. Any
/// process that can open the lock can lock it, and no daemon starts then.
fn own_file(name: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(name)?;
    file.set_permissions(Permissions::from_mode(0o600))?; // one that was there
    Ok(file)
}

fn occupied(lock: &Path) -> Failure {
    Failure::Unfit(format!(
        "another scx_artis runs on this machine ({} is locked): stop it first, or watch it with \
         scx_artis --monitor 1",
        lock.display()
    ))
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path); // not while a saved state is in it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("scx_artis");
        let first = RunDir::lock(&path).expect("locked");
        let error = RunDir::lock(&path).expect_err("locked already");
        assert!(error.to_string().contains("another scx_artis"), "{error}");
        drop(first);
        assert!(!path.exists(), "something is left behind");
        RunDir::lock(&path).expect("free again");
    }

    #[test]
    fn only_its_owner_may_lock_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("scx_artis");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let name = path.join(LOCK);
        let first = RunDir::lock(&path).expect("locked");
        assert_eq!((mode(&path), mode(&name)), (0o700, 0o600));
        // what a daemon of another version left when it was killed
        std::mem::forget(first);
        fs::remove_file(&name).expect("removed");
        fs::write(&name, "").expect("written");
        fs::set_permissions(&name, Permissions::from_mode(0o644)).expect("changed");
        let _second = RunDir::lock(&path).expect("locked");
        assert_eq!(mode(&name), 0o600);
    }

    #[test]
    fn others_come_in_only_where_a_group_may_watch() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("scx_artis");
        let run_dir = RunDir::lock(&path).expect("locked");
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o777;
        for (gid, expected) in [(0, 0o700), (27, 0o711), (0, 0o700)] {
            run_dir.open_for(gid).expect("changed");
            assert_eq!(mode(), expected, "group {gid}");
        }
    }

    #[test]
    fn only_its_owner_may_read_a_saved_state() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join("state.json");
        let mode = || fs::metadata(&state).expect("there").permissions().mode() & 0o777;
        crate::socket::masked(0, || save(&state, &"one").expect("saved"));
        assert_eq!(mode(), 0o600);
        // the draft of a daemon that was killed before it could rename it
        let draft = state.with_extension("draft");
        fs::write(&draft, "longer than the next").expect("written");
        fs::set_permissions(&draft, Permissions::from_mode(0o644)).expect("changed");
        save(&state, &"two").expect("saved");
        assert_eq!((mode(), saved(&state).expect("readable")), (0o600, Some("\"two\"".into())));
        assert!(!draft.exists());
    }

    #[test]
    fn a_saved_state_outlives_the_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let run_dir = RunDir::lock(dir.path()).expect("locked");
        let saved = run_dir.saved_preempt();
        fs::write(&saved, "{}").expect("written");
        drop(run_dir);
        assert!(saved.exists());
    }
}
