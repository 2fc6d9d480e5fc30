// SPDX-License-Identifier: GPL-2.0-only
//! Counters shared between a scenario and its workers: a file of words in
//! /dev/shm, mapped by all. Reading one takes no system call of the worker.

use std::fs::{self, OpenOptions};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// Workers of one board.
pub const SLOTS: usize = 256;
/// Words of one worker: work done, its longest pause (ns).
const WORDS: usize = 2;
const BYTES: usize = (1 + SLOTS * WORDS) * size_of::<u64>();

/// The mapped file. Word 0 is the start signal.
pub struct Board {
    map: NonNull<libc::c_void>,
    path: PathBuf,
    owner: bool,
}

// SAFETY: the mapping is shared memory that is only accessed through atomics.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

impl Board {
    /// A new board, removed when it is dropped.
    pub fn create(name: &str) -> Result<Self> {
        let path = PathBuf::from(format!("/dev/shm/artis-{name}.{}", std::process::id()));
        Self::map(path, true)
    }

    /// The board of another process.
    pub fn open(path: &Path) -> Result<Self> {
        Self::map(path.to_path_buf(), false)
    }

    fn map(path: PathBuf, owner: bool) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(owner)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("open {}", path.display()))?;
        if owner {
            file.set_len(BYTES as u64)?;
        }
        let len = NonZeroUsize::new(BYTES).context("size of the board")?;
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let map = unsafe { mmap(None, len, prot, MapFlags::MAP_SHARED, &file, 0) }
            .with_context(|| format!("map {}", path.display()))?;
        Ok(Self { map, path, owner })
    }

    /// Where the board is, for workers.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn word(&self, i: usize) -> &AtomicU64 {
        debug_assert!(i < 1 + SLOTS * WORDS);
        // SAFETY: inside the mapping, aligned, and only ever used as an atomic.
        unsafe { &*self.map.as_ptr().cast::<AtomicU64>().add(i) }
    }

    /// The start signal that some workers wait for.
    pub fn start(&self) {
        self.word(0).store(1, Ordering::Release);
    }

    /// Has the start signal been given?
    #[must_use]
    pub fn started(&self) -> bool {
        self.word(0).load(Ordering::Acquire) != 0
    }

    /// Work done by the worker of `slot`.
    #[must_use]
    pub fn done(&self, slot: usize) -> &AtomicU64 {
        self.word(1 + slot * WORDS)
    }

    /// The longest time between two counts of a worker that is clocked, ns.
    #[must_use]
    pub fn longest(&self, slot: usize) -> &AtomicU64 {
        self.word(2 + slot * WORDS)
    }

    /// Refuses a slot that the board does not have.
    pub fn check(slot: usize) -> Result<()> {
        ensure!(slot < SLOTS, "slot {slot} of {SLOTS}");
        Ok(())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length; no reference outlives self.
        let _ = unsafe { munmap(self.map, BYTES) };
        if self.owner {
            let _ = fs::remove_file(&self.path);
        }
    }
}
