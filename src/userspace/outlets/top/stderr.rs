// SPDX-License-Identifier: GPL-2.0-only
//! What is written to stderr while the view has the terminal, by whomever (libbpf writes there,
//! too): kept, and written when the terminal is given back. It would be all over the view else.

use std::fs::File;
use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::stdio::dup2_stderr;

/// Stderr, put aside.
#[derive(Debug)]
pub struct Kept {
    terminal: OwnedFd,
    text: File,
}

impl Kept {
    /// Puts stderr aside. `None`: it is no terminal, so what is written there disturbs nobody.
    ///
    /// # Errors
    /// When it cannot be put aside; then it is as before.
    pub fn start() -> io::Result<Option<Self>> {
        if !io::stderr().is_terminal() {
            return Ok(None);
        }
        let terminal = fcntl_dupfd_cloexec(io::stderr(), 3)?;
        let text = File::from(memfd_create("stderr", MemfdFlags::CLOEXEC)?);
        dup2_stderr(&text)?;
        Ok(Some(Self { terminal, text }))
    }

    /// Puts stderr back and writes to it what came meanwhile.
    pub fn release(mut self) {
        // what fails here cannot be told anywhere
        let _ = dup2_stderr(&self.terminal);
        let _ = self.text.seek(SeekFrom::Start(0));
        let mut stderr = io::stderr().lock();
        let _ = io::copy(&mut self.text, &mut stderr);
        let _ = stderr.flush();
    }
}
