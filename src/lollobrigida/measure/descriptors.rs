// SPDX-License-Identifier: GPL-2.0-only
//! Room for many perf events: each is an open file.

use std::{fs, io};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Makes room for `more` open files by raising the soft limit, at most to the hard one.
/// The tasks are started before this, so they do not see it.
///
/// # Errors
/// `EMFILE` when even the hard limit is too low.
pub fn make_room(more: usize) -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    // some for whatever else is opened meanwhile
    let open = fs::read_dir("/proc/self/fd").map_or(64, Iterator::count) + 64;
    let needed = (open + more) as u64;
    if needed <= soft {
        return Ok(());
    }
    if needed > hard {
        return Err(io::Error::from_raw_os_error(libc::EMFILE));
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard)?;
    Ok(())
}
