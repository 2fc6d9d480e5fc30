// SPDX-License-Identifier: GPL-2.0-only
//! The task processes: started, watched, and always gone in the end.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::poll::poll;
use crate::actor::board::{Board, State};

/// After the release a task has only its report to write.
const PARTING: Duration = Duration::from_secs(10);
/// A killed process is gone at once, unless the kernel holds it.
const DYING: Duration = Duration::from_secs(5);

/// All tasks of a run. Dropped: killed and reaped.
pub struct Children {
    board: Arc<Board>,
    list: Vec<Process>,
}

struct Process {
    child: Child,
    /// Readable from its death on.
    pidfd: OwnedFd,
    dead: bool,
}

impl Children {
    /// Starts `program actor` for each task of the board.
    ///
    /// # Errors
    /// When a process cannot be started; those that were are killed.
    pub fn start(program: &OsStr, board: &Arc<Board>) -> Result<Self> {
        let mut children = Self { board: Arc::clone(board), list: Vec::new() };
        for task in 0..board.plan().tasks.len() {
            let mut command = Command::new(program);
            command
                .arg("actor")
                .args(["--board-fd", &board.fd().to_string(), "--task", &task.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                // ^C at a terminal is for the runner, which then stops its tasks
                .process_group(0);
            let child = command.spawn().with_context(|| {
                format!(
                    "task {task} of {} cannot be started ({}): fewer tasks, or more processes \
                     (ulimit -u) and memory are needed",
                    board.plan().tasks.len(),
                    program.display()
                )
            })?;
            children.list.push(Process::new(child)?);
        }
        Ok(children)
    }

    /// By task.
    #[must_use]
    pub fn pids(&self) -> Vec<Pid> {
        self.list.iter().map(Process::pid).collect()
    }

    /// Of the living, with their tasks: readable when one dies.
    #[must_use]
    pub fn living(&self) -> Vec<(usize, RawFd)> {
        let living = self.list.iter().enumerate().filter(|(_, process)| !process.dead);
        living.map(|(task, process)| (task, process.pidfd.as_raw_fd())).collect()
    }

    /// How task `i` ended, if it has; it stays a zombie, so that its figures can be read.
    pub fn death(&mut self, i: usize) -> Option<String> {
        let process = &mut self.list[i];
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let why = match waitid(Id::Pid(process.pid()), flags) {
            Ok(WaitStatus::Exited(_, code)) => format!("ended by itself with exit code {code}"),
            Ok(WaitStatus::Signaled(_, signal, _)) => format!("killed by {signal}"),
            _ => return None,
        };
        process.dead = true;
        Some(why)
    }

    /// Kills task `i`.
    pub fn kill(&mut self, i: usize) {
        // it is a child that was not reaped, so its number is its own
        let _ = self.list[i].child.kill();
    }

    /// Waits until all are gone, kills those that stay, and says which these were.
    pub fn reap(&mut self) -> Vec<usize> {
        self.wait_for_deaths(PARTING);
        let late: Vec<usize> = self.living().into_iter().map(|(task, _)| task).collect();
        self.end();
        late
    }

    /// Kills and reaps whatever is left.
    fn end(&mut self) {
        for (task, _) in self.living() {
            self.kill(task);
        }
        self.wait_for_deaths(DYING);
        for (task, process) in self.list.iter_mut().enumerate() {
            if !process.dead {
                let pid = process.pid();
                eprintln!("task {task} (process {pid}) does not die: the kernel holds it");
            } else if let Err(err) = process.child.wait() {
                eprintln!("task {task} cannot be reaped: {err}");
            }
            // whoever waits for the board's tasks is let go
            if self.board.state(task) < State::Done {
                self.board.give_up(task, "the run was given up");
            }
        }
        self.list.clear();
    }

    fn wait_for_deaths(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        loop {
            for (task, _) in self.living() {
                self.death(task);
            }
            let fds: Vec<RawFd> = self.living().into_iter().map(|(_, fd)| fd).collect();
            let left = until.saturating_duration_since(Instant::now());
            if fds.is_empty() || left.is_zero() || poll(&fds, Some(left)).is_err() {
                return;
            }
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    fn new(mut child: Child) -> Result<Self> {
        // SAFETY: takes a number and gives a new descriptor.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        if fd < 0 {
            let err = io::Error::last_os_error();
            let _ = child.kill();
            let _ = child.wait();
            return Err(err).context("pidfd_open(2) failed: a kernel from 5.3 on is needed");
        }
        // SAFETY: just opened, and nobody else's.
        let pidfd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        Ok(Self { child, pidfd, dead: false })
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }
}
