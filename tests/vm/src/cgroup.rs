// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup with a weight, removed when dropped.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::guest::{PATIENCE, line, until, write};

const ROOT: &str = "/sys/fs/cgroup";
const CONTROL: &str = "/sys/fs/cgroup/cgroup.subtree_control";

/// A child of the root cgroup.
pub struct Cgroup {
    dir: PathBuf,
    /// The root group had no children with weights before.
    first: bool,
}

impl Cgroup {
    /// Makes the group with this cpu.weight; None if the kernel has no such thing.
    pub fn with_weight(name: &str, weight: u32) -> Result<Option<Self>> {
        let controllers = fs::read_to_string(format!("{ROOT}/cgroup.controllers"));
        if !controllers.is_ok_and(|c| c.split_whitespace().any(|c| c == "cpu")) {
            return Ok(None);
        }
        let first = !line(CONTROL)?.split_whitespace().any(|c| c == "cpu");
        write(CONTROL, "+cpu")?;
        let dir = PathBuf::from(format!("{ROOT}/{name}"));
        fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        let group = Self { dir, first };
        let path = group.dir.join("cpu.weight");
        fs::write(&path, weight.to_string()).with_context(|| path.display().to_string())?;
        Ok(Some(group))
    }

    /// Where tasks join.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let dir = &self.dir;
        let _ = until("the cgroup is empty", PATIENCE, || Ok(fs::remove_dir(dir).is_ok()));
        if self.first {
            let _ = write(CONTROL, "-cpu");
        }
    }
}
