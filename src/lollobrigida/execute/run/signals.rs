// SPDX-License-Identifier: GPL-2.0-only
//! SIGINT, SIGTERM and SIGHUP end a run, not the runner: it cuts the run and cleans up.

use std::io::{PipeReader, PipeWriter, Read, pipe};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

const CAUGHT: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// The handler writes to it. Never closed, since a handler may run late.
static PIPE: OnceLock<(PipeReader, PipeWriter)> = OnceLock::new();
/// Its end for the handler, which may only touch atomics.
static WRITE_FD: AtomicI32 = AtomicI32::new(-1);
static CAME: AtomicBool = AtomicBool::new(false);
/// Handlers are the process's, and two runs at once would disturb each other.
static ONE_RUN: Mutex<()> = Mutex::new(());

/// Did one of the signals cut a run of this process? For whoever makes several runs.
#[must_use]
pub fn came() -> bool {
    CAME.load(SeqCst)
}

/// Catches the signals while it is there. One at a time: others wait for their turn.
pub struct Signals {
    before: Vec<(Signal, SigAction)>,
    pipe: &'static PipeReader,
    _turn: MutexGuard<'static, ()>,
}

impl Signals {
    /// From now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn catch() -> Result<Self> {
        let turn = ONE_RUN.lock().unwrap_or_else(PoisonError::into_inner);
        let made = pipe().context("no pipe for signals")?;
        let (read, write) = PIPE.get_or_init(|| made);
        WRITE_FD.store(write.as_raw_fd(), SeqCst);
        let mut signals = Self { before: Vec::new(), pipe: read, _turn: turn };
        let action = SigAction::new(SigHandler::Handler(tell), SaFlags::empty(), SigSet::empty());
        for signal in CAUGHT {
            // SAFETY: the handler makes one write(2) and touches atomics only.
            let before = unsafe { sigaction(signal, &action) }
                .with_context(|| format!("{signal} cannot be caught"))?;
            signals.before.push((signal, before));
            // nohup, or a shell's background: not for us
            if matches!(before.handler(), SigHandler::SigIgn) {
                // SAFETY: the action that was in force before.
                unsafe { sigaction(signal, &before) }.context("a signal cannot be ignored")?;
            }
        }
        Ok(signals)
    }

    /// Readable when a signal came.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.pipe.as_raw_fd()
    }

    /// Forgets one signal. Call when [`Signals::fd`] is readable.
    pub fn take(&self) {
        let mut pipe = self.pipe;
        // a byte is there; if it cannot be had, the run is cut all the same
        let _ = pipe.read(&mut [0]);
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: an action that was in force before.
            let put_back = unsafe { sigaction(*signal, before) };
            debug_assert!(put_back.is_ok(), "{signal} was caught before");
        }
    }
}

extern "C" fn tell(_signal: libc::c_int) {
    CAME.store(true, SeqCst);
    // SAFETY: write(2) may be called in handlers; the byte is a constant, the pipe stays.
    // errno is put back, since whoever was interrupted may be about to read it.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(WRITE_FD.load(SeqCst), [1_u8].as_ptr().cast(), 1);
        *libc::__errno_location() = errno;
    }
}
