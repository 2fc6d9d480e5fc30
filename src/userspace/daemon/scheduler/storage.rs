// SPDX-License-Identifier: GPL-2.0-only
//! Storage of tasks and cgroups, which the kernel frees once, when the daemon ends
//! (docs/decisions/0024-storage.md).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result};

use crate::abi::skel::{BpfSkel, OpenBpfSkel};

/// All maps of task and cgroup storage, of the first start; each further one uses them again.
#[derive(Default)]
pub struct Storage(Option<[OwnedFd; 3]>);

impl Storage {
    /// Has `skel` use the maps that there are already.
    ///
    /// # Errors
    /// When libbpf cannot use a map once more.
    pub(super) fn reuse(&self, skel: &mut OpenBpfSkel<'_>) -> Result<()> {
        let maps = &mut skel.maps;
        let maps = [&mut maps.task_stor, &mut maps.follow_stor, &mut maps.cgroup_stor];
        for (map, fd) in maps.into_iter().zip(self.0.iter().flatten()) {
            map.reuse_fd(fd.as_fd()).with_context(|| format!("using {:?} again", map.name()))?;
        }
        Ok(())
    }

    /// Keeps the maps of `skel`, which is loaded, if there are none yet.
    ///
    /// # Errors
    /// When there are no more file descriptors.
    pub(super) fn keep(&mut self, skel: &BpfSkel<'_>) -> Result<()> {
        if self.0.is_some() {
            return Ok(());
        }
        let maps = &skel.maps;
        let [task, follow, cgroup] =
            [maps.task_stor.as_fd(), maps.follow_stor.as_fd(), maps.cgroup_stor.as_fd()]
                .map(|fd: BorrowedFd<'_>| fd.try_clone_to_owned());
        self.0 = Some([task?, follow?, cgroup?]);
        Ok(())
    }
}
