// SPDX-License-Identifier: GPL-2.0-only
//! Policies and affinities are set by thread id, which may be another task's since it was looked at.
//! A program of src/bpf/change.bpf.c has the kernel refuse that.

use std::path::Path;

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use crate::abi::artis_aim;
use crate::daemon::classes::facts::TaskId;
use crate::daemon::plain::Plain;

/// What the program is told.
#[derive(Debug)]
pub struct Aim(MapHandle);

/// A task that can be changed by its id: while another one has that id, the kernel says ESRCH.
#[derive(Clone, Copy, Debug)]
pub struct Aimed(i32);

impl Aim {
    /// The map that is pinned at `path`.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let map = MapHandle::from_pinned_path(path);
        Ok(Self(map.with_context(|| format!("opening {}", path.display()))?))
    }

    /// The next change is of this task, until another one is aimed at.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn at(&self, id: TaskId) -> Result<Aimed> {
        let tid = id.tid.cast_unsigned();
        let mut aim = artis_aim { tid, start_ticks: id.start_ticks, pad: 0 };
        self.0.update(&0_u32.to_ne_bytes(), aim.bytes_mut(), MapFlags::ANY)?;
        Ok(Aimed(id.tid))
    }
}

impl Aimed {
    /// The thread id.
    pub fn tid(self) -> i32 {
        self.0
    }
}
