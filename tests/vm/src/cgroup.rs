// SPDX-License-Identifier: GPL-2.0-only
//! Cgroups, removed when dropped.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use crate::guest::{PATIENCE, line, until, write};

const ROOT: &str = "/sys/fs/cgroup";
const CONTROL: &str = "/sys/fs/cgroup/cgroup.subtree_control";

/// A child of the root cgroup.
pub struct Cgroup {
    dir: PathBuf,
    /// A controller that children of the root group had not before.
    first: Option<&'static str>,
}

impl Cgroup {
    /// Makes the group with this cpu.weight.
    ///
    /// # Errors
    /// When it is there already, or the kernel has no such weights.
    pub fn with_weight(name: &str, weight: u32) -> Result<Self> {
        let group = Self::with(name, "cpu")?;
        group.set("cpu.weight", &weight.to_string())?;
        Ok(group)
    }

    /// Makes the group, with this controller.
    ///
    /// # Errors
    /// When it is there already, or the kernel has no such controller.
    pub fn with(name: &str, controller: &'static str) -> Result<Self> {
        let first = !line(CONTROL)?.split_whitespace().any(|c| c == controller);
        write(CONTROL, &format!("+{controller}"))?;
        let mut group = Self::plain(name)?;
        group.first = first.then_some(controller);
        Ok(group)
    }

    /// Writes to one of its files.
    ///
    /// # Errors
    /// When the kernel does not take it.
    pub fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, value).with_context(|| format!("{value} to {}", path.display()))
    }

    /// Makes the group, without a weight.
    ///
    /// # Errors
    /// When it is there already, or there is no cgroup v2.
    pub fn plain(name: &str) -> Result<Self> {
        let dir = PathBuf::from(format!("{ROOT}/{name}"));
        fs::create_dir(&dir).with_context(|| dir.display().to_string())?;
        Ok(Self { dir, first: None })
    }

    /// A shell that joins and becomes this command, or runs these ones.
    #[must_use]
    pub fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("echo 0 >{}\n{command}", self.procs().display())]);
        shell
    }

    /// Sends SIGKILL to all tasks in it, in the groups below it, too, and to those that are just born.
    pub fn kill(&self) -> Result<()> {
        self.set("cgroup.kill", "1")
    }

    /// Stops all tasks in it and in the groups below it, and waits until they stand; or continues them.
    ///
    /// # Errors
    /// When one does not stop.
    pub fn freeze(&self, on: bool) -> Result<()> {
        self.set("cgroup.freeze", if on { "1" } else { "0" })?;
        let events = self.dir.join("cgroup.events");
        until("all tasks of the cgroup stand", PATIENCE, || {
            Ok(!on || fs::read_to_string(&events)?.lines().any(|line| line == "frozen 1"))
        })
    }

    /// Where tasks join.
    #[must_use]
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // with those that were made below it
        let _ = until("the cgroup is empty", PATIENCE, || {
            let groups = WalkDir::new(&self.dir).contents_first(true).into_iter().flatten();
            groups.filter(|e| e.file_type().is_dir()).for_each(|e| _ = fs::remove_dir(e.path()));
            Ok(!self.dir.exists())
        });
        if let Some(controller) = self.first {
            let _ = write(CONTROL, &format!("-{controller}"));
        }
    }
}
