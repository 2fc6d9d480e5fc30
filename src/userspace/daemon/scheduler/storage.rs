// SPDX-License-Identifier: GPL-2.0-only
//! Storage of tasks and cgroups, which the kernel frees once, when the daemon ends
//! (docs/decisions/0024-storage.md).

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore as _, MapType, Object, OpenObject};

/// The maps of task and cgroup storage of the first start; each further one uses them again.
#[derive(Default)]
pub struct Storage(Vec<(OsString, OwnedFd)>);

impl Storage {
    /// Has `object` use the maps that there are already.
    ///
    /// # Errors
    /// When libbpf cannot use a map once more.
    pub(super) fn reuse(&self, object: &mut OpenObject) -> Result<()> {
        for mut map in object.maps_mut() {
            if let Some((name, fd)) = self.0.iter().find(|(name, _)| name == map.name()) {
                map.reuse_fd(fd.as_fd()).with_context(|| format!("using map {name:?} again"))?;
            }
        }
        Ok(())
    }

    /// Keeps the maps of `object`, which is loaded, if there are none yet.
    ///
    /// # Errors
    /// When there are no more file descriptors.
    pub(super) fn keep(&mut self, object: &Object) -> Result<()> {
        if !self.0.is_empty() {
            return Ok(());
        }
        let storage = object
            .maps()
            .filter(|map| matches!(map.map_type(), MapType::TaskStorage | MapType::CGrpStorage));
        self.0 = storage
            .map(|map| Ok((map.name().to_owned(), map.as_fd().try_clone_to_owned()?)))
            .collect::<Result<_>>()
            .context("keeping the storage of tasks and cgroups")?;
        Ok(())
    }
}
