// SPDX-License-Identifier: GPL-2.0-only
//! A process of which a thread spins, where it would wait: a loop in its own text, by ptrace(2).

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result, ensure};
use libc::user_regs_struct;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use procfs::process::{MMPermissions, Process};

/// A jump to itself.
const LOOP: [u8; 2] = [0xeb, 0xfe];

/// It spins from [`Spinning::begin`] to [`Spinning::end`].
pub struct Spinning {
    pid: Pid,
    /// Where it was, and is again.
    before: user_regs_struct,
}

impl Spinning {
    /// The first thread of the process.
    ///
    /// # Errors
    /// When it cannot be traced, or has no such bytes.
    pub fn begin(pid: u32) -> Result<Self> {
        let place = place_of_loop(pid)?;
        let pid = Pid::from_raw(pid.cast_signed());
        stop(pid)?;
        let before = ptrace::getregs(pid)?;
        // in no system call, or the kernel would restart that
        let orig_rax = u64::MAX;
        ptrace::setregs(pid, user_regs_struct { rip: place, orig_rax, ..before })?;
        ptrace::detach(pid, None)?;
        Ok(Self { pid, before })
    }

    /// It goes on where it was.
    ///
    /// # Errors
    /// When it cannot be traced.
    pub fn end(self) -> Result<()> {
        stop(self.pid)?;
        ptrace::setregs(self.pid, self.before)?;
        Ok(ptrace::detach(self.pid, None)?)
    }
}

fn stop(pid: Pid) -> Result<()> {
    ptrace::attach(pid)?;
    let stopped = waitpid(pid, Some(WaitPidFlag::__WALL))?;
    ensure!(matches!(stopped, WaitStatus::Stopped(..)), "it does not stop: {stopped:?}");
    Ok(())
}

/// Where its text has these bytes, as an instruction or within others.
fn place_of_loop(pid: u32) -> Result<u64> {
    let process = Process::new(pid.cast_signed())?;
    let memory = File::open(format!("/proc/{pid}/mem"))?;
    let text = process.maps()?.into_iter().filter(|map| map.perms.contains(MMPermissions::EXECUTE));
    for (begin, end) in text.map(|map| map.address) {
        let mut bytes = vec![0; usize::try_from(end - begin)?];
        // what the kernel maps cannot be read
        if memory.read_exact_at(&mut bytes, begin).is_err() {
            continue;
        }
        if let Some(at) = bytes.windows(LOOP.len()).position(|found| found == LOOP) {
            return Ok(begin + at as u64);
        }
    }
    Err(anyhow::anyhow!("no jump to itself")).context("the text of the process")
}
