// SPDX-License-Identifier: GPL-2.0-only
//! The shared mapping itself: the one place that turns offsets into references.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use memmap2::{MmapOptions, MmapRaw};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// A mapped file of fixed length.
pub(super) struct Memory(MmapRaw);

impl Memory {
    /// Zeroed memory of `len` bytes, and its file.
    pub fn create(len: usize) -> io::Result<(Self, OwnedFd)> {
        // without MFD_CLOEXEC: the tasks inherit it
        let fd = memfd_create("lollobrigida", MFdFlags::empty())?;
        let file = File::from(fd);
        file.set_len(len as u64)?;
        let fd = OwnedFd::from(file);
        Ok((Self::open(&fd)?, fd))
    }

    /// Maps all of a file.
    pub fn open(file: &impl AsFd) -> io::Result<Self> {
        let file = File::from(file.as_fd().try_clone_to_owned()?);
        Ok(Self(MmapOptions::new().map_raw(&file)?))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The words at an offset. Only for types made of atomics.
    pub fn at<T: Words>(&self, offset: usize) -> &T {
        let end = offset.checked_add(size_of::<T>());
        assert!(end.is_some_and(|end| end <= self.len()), "offset {offset} is off the board");
        assert!(offset.is_multiple_of(align_of::<T>()), "offset {offset} is not aligned");
        // SAFETY: inside the mapping and aligned (mappings begin at a page), alive as long
        // as self; T is of atomics only (trait Words), for which any bytes are valid and
        // changes by other processes are no data race.
        unsafe { &*self.0.as_ptr().add(offset).cast::<T>() }
    }

    /// Copies bytes out that nobody writes meanwhile.
    pub fn read(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        // SAFETY: `area` checked the bounds; the vector is another memory.
        unsafe { self.area(offset, len).copy_to_nonoverlapping(bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Copies bytes in that nobody reads meanwhile.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let to = self.area(offset, bytes.len());
        // SAFETY: `area` checked the bounds; the slice is another memory.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The address of `len` bytes at an offset, for items whose owner changes by turns.
    pub fn area(&self, offset: usize, len: usize) -> *mut u8 {
        let end = offset.checked_add(len);
        assert!(end.is_some_and(|end| end <= self.len()), "offset {offset} is off the board");
        // SAFETY: inside the mapping.
        unsafe { self.0.as_mut_ptr().add(offset) }
    }
}

/// Types made of atomics only, for which any bytes are valid.
///
/// # Safety
/// They must be just that.
pub(super) unsafe trait Words {}

// SAFETY: atomics only.
unsafe impl Words for super::layout::Header {}
// SAFETY: atomics only.
unsafe impl Words for super::layout::Slot {}
// SAFETY: atomics only.
unsafe impl Words for super::layout::LinkWords {}
// SAFETY: an atomic.
unsafe impl Words for std::sync::atomic::AtomicU64 {}
