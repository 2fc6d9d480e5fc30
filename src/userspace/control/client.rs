// SPDX-License-Identifier: GPL-2.0-only
//! The other end: one request to the daemon that runs, one reply.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::Context;

use super::{REPLY_TIME, Reply, Request, START_TIME};
use crate::exit::Failure;

/// Asks the daemon that listens at `path`.
///
/// # Errors
/// [`Failure::Unfit`] when none runs or it may not be asked, and whatever the daemon says
/// when it did not do it.
pub fn ask(path: &Path, request: &Request) -> Result<Reply, Failure> {
    let mut stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::Unfit(format!(
            "no scx_artis runs on this machine (nobody listens at {}): start one first",
            path.display()
        )),
        ErrorKind::PermissionDenied => Failure::Unfit(format!(
            "only root may control scx_artis ({} is closed to you): use sudo",
            path.display()
        )),
        _ => Failure::Unexpected(
            anyhow::Error::from(error).context(format!("connecting to {}", path.display())),
        ),
    })?;
    // longer than the daemon itself waits, so that it can say what it waited for
    stream.set_read_timeout(Some(START_TIME + 2 * REPLY_TIME)).context("talking to scx_artis")?;
    let mut text = serde_json::to_string(request).context("writing the request")?;
    text.push('\n');
    // a daemon that refuses closes at once: its answer is there all the same
    let sent = stream.write_all(text.as_bytes());
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).context("waiting for scx_artis to answer")?;
    if line.is_empty() {
        sent.context("talking to scx_artis")?;
        return Err(Failure::Unfit("scx_artis ended before it answered".to_owned()));
    }
    match serde_json::from_str(&line).context("understanding what scx_artis answered")? {
        Reply::Failed { code, text } => Err(Failure::Told { code, text }),
        reply => Ok(reply),
    }
}
