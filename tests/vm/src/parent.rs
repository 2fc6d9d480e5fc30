// SPDX-License-Identifier: GPL-2.0-only
//! A process that forks, and ends, when it is told to.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::cpus::Cpus;
use crate::guest::{PATIENCE, until};
use crate::policy::Policy;

/// A shell that has a child, and ends, when it is told to.
pub struct Parent {
    shell: Child,
    /// What it waits for, and the id of its child.
    files: [String; 2],
}

impl Parent {
    /// Starts it with this policy, on these CPUs.
    pub fn start(cpus: Cpus, policy: Policy) -> Result<Self> {
        let files = ["go", "orphan"].map(|name| format!("/tmp/parent.{name}.{}", policy.priority));
        let [go, orphan] = &files;
        mkfifo(go.as_str(), Mode::S_IRWXU)?;
        let command =
            format!("read x <{go}; sleep 600 & echo $! >{orphan}~; mv {orphan}~ {orphan}");
        let shell = Command::new("sh").args(["-c", &command]).stdin(Stdio::null()).spawn()?;
        let parent = Self { shell, files };
        cpus.bind(parent.tid())?;
        policy.set(parent.tid())?;
        Ok(parent)
    }

    /// The id of the shell.
    pub fn tid(&self) -> i32 {
        self.shell.id().cast_signed()
    }

    /// Lets the shell have its child and end, and returns the id of the child.
    pub fn orphan(&mut self) -> Result<i32> {
        let [go, orphan] = &self.files;
        fs::write(go, "go\n")?;
        until("the orphan is there", PATIENCE, || Ok(Path::new(orphan).exists()))?;
        self.shell.wait()?;
        Ok(fs::read_to_string(orphan)?.trim().parse()?)
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
        let [_, orphan] = &self.files;
        let orphan = fs::read_to_string(orphan).ok().and_then(|id| id.trim().parse().ok());
        let _ = orphan.map(|id| kill(Pid::from_raw(id), Signal::SIGKILL));
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
    }
}
