// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler's program, as a child. What it prints is kept, to be shown when it fails.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::unistd::Pid;

/// Of what a program printed, so much is looked at and so many lines are shown.
const TAIL_BYTES: u64 = 16 << 10;
const TAIL_LINES: usize = 12;

/// How often is looked whether something has happened.
pub const POLL: Duration = Duration::from_millis(5);

/// A running scheduler. Killed when dropped; the kernel takes over then.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: File,
    name: String,
}

impl Daemon {
    /// Starts `command`: a program and its arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(command: &[String]) -> Result<Self> {
        let (name, args) = command.split_first().context("a scheduler without a program")?;
        let log = tempfile::tempfile().context("a file for the scheduler's output")?;
        let mut command = Command::new(name);
        command.args(args).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log.try_clone()?);
        // Ctrl-C is for us: we stop the scheduler after the tasks, not with them.
        command.process_group(0);
        let heard = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: sigaction(2) and prctl(2) are safe to call between fork and exec; nothing else
        // happens here.
        unsafe {
            command.pre_exec(move || {
                // what a shell starts in the background ignores it, and so would the scheduler
                sigaction(Signal::SIGINT, &heard).map_err(io::Error::from)?;
                // if we die without a chance to stop it, it must not stay in charge
                prctl::set_pdeathsig(Signal::SIGTERM).map_err(io::Error::from)
            });
        }
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        Ok(Self { child, log, name: name.clone() })
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("asking whether {} runs", self.name))
    }

    /// The last lines that it printed, each after a mark, and a line feed before them; empty
    /// if there are none.
    #[must_use]
    pub fn last_words(&self) -> String {
        let length = self.log.metadata().map_or(0, |meta| meta.len());
        let from = length.saturating_sub(TAIL_BYTES);
        let mut bytes = vec![0; (length - from) as usize];
        let read = self.log.read_at(&mut bytes, from).unwrap_or(0);
        let text = String::from_utf8_lossy(&bytes[..read]);
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(TAIL_LINES);
        lines[first..].iter().map(|line| format!("\n  | {line}")).collect()
    }

    /// Asks it to end, ever more urgently: SIGINT, SIGTERM, SIGKILL, with `patience` after
    /// each. Tells how it ended.
    ///
    /// # Errors
    /// When it is there even after SIGKILL.
    pub fn stop(&mut self, patience: Duration) -> Result<ExitStatus> {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGKILL] {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            // fails if it has just ended, which the next look finds out
            let _ = kill(Pid::from_raw(self.child.id().cast_signed()), signal);
            let began = Instant::now();
            while began.elapsed() < patience {
                if let Some(status) = self.ended()? {
                    return Ok(status);
                }
                sleep(POLL);
            }
        }
        bail!(
            "{} (process {}) is there after SIGKILL: it is stuck in the kernel, and may be in \
             charge still. See dmesg{}",
            self.name,
            self.child.id(),
            self.last_words()
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
