// SPDX-License-Identifier: GPL-2.0-only
//! A viewer's end of the stream.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::frame::kind;
use super::queue::OWN_ROOM;
use super::stream::{Carrier, More, Next, Stream};
use super::{Hub, SOCKET, Wanted, recording};
use crate::exit::Failure;
use crate::model::{Model, Snapshot};

/// Bytes that are read at a time.
const PIECE: usize = 256 * 1024;
/// Least time to wait for anything: a socket takes no timeout of 0.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Where a viewer gets its snapshots from: the daemon that runs, or a recording.
pub struct Source {
    stream: Stream,
    model: Model,
    ended: bool,
}

/// The recording `replay`, or what the daemon on this machine does from now on.
///
/// # Errors
/// [`Failure::Unfit`] when no daemon runs or it may not be watched, [`Failure::Told`] when
/// the file is no recording.
pub fn source(replay: Option<&Path>, wanted: Wanted) -> Result<Source, Failure> {
    match replay {
        Some(path) => Ok(Source::new(recording::open(path)?, Duration::ZERO)),
        None => Ok(Source::new(connect(Path::new(SOCKET), wanted)?, wanted.interval)),
    }
}

impl Source {
    /// What happens from now on in this process, the daemon's. `None`: too many watch.
    pub fn inside(hub: &Arc<Hub>, wanted: Wanted) -> Option<Self> {
        let viewer = hub.subscribe(wanted, OWN_ROOM)?;
        Some(Self::new(viewer.into_stream(), wanted.interval))
    }

    /// What `stream` tells, in intervals of about `interval` or longer.
    pub(super) fn new(stream: Stream, interval: Duration) -> Self {
        Self { stream, model: Model::new(interval), ended: false }
    }

    /// Waits for the end of the next interval, and returns what there is then. `None`: the
    /// recording or the daemon came to its end, or the deadline came first
    /// ([`Source::has_ended`] tells).
    ///
    /// # Errors
    /// When the stream is damaged, or of another version of scx_artis.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<&Snapshot>, Failure> {
        while !self.ended {
            match self.stream.next(deadline)? {
                Next::Frame(frame) => {
                    if self.model.take(&frame).map_err(anyhow::Error::from)? {
                        return Ok(Some(self.model.snapshot()));
                    }
                }
                Next::TimedOut => return Ok(None),
                Next::End => self.ended = true,
            }
        }
        Ok(None)
    }

    /// What there was at the end of the last interval.
    pub fn last(&self) -> &Snapshot {
        self.model.snapshot()
    }

    /// Will nothing come any more?
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// The stream of the daemon that listens at `path`.
///
/// # Errors
/// [`Failure::Unfit`] when none does, or it may not be watched.
pub fn connect(path: &Path, wanted: Wanted) -> Result<Stream, Failure> {
    let mut socket = UnixStream::connect(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => Failure::Unfit(format!(
            "no scx_artis runs on this machine (nobody listens at {}): start one first, or look \
             at a recording with --replay",
            path.display()
        )),
        ErrorKind::PermissionDenied => Failure::Unfit(format!(
            "you may not watch scx_artis ({} is closed to you): use sudo, or be in the group that \
             its option --feed-group names",
            path.display()
        )),
        _ => Failure::Unexpected(
            anyhow::Error::from(error).context(format!("connecting to {}", path.display())),
        ),
    })?;
    let mut line = serde_json::to_string(&wanted).context("writing what is wanted")?;
    line.push('\n');
    // a daemon that refuses closes at once: that is found when its answer is read
    let _ = socket.write_all(line.as_bytes());
    let mut stream = Stream::new(Socket { socket });
    match stream.peek(None)? {
        Next::Frame(frame) if frame.kind == kind::BEGIN => Ok(stream),
        _ => Err(Failure::Unfit(
            "scx_artis ended the stream before it began: it is stopping, or has as many viewers \
             as it takes"
                .into(),
        )),
    }
}

struct Socket {
    socket: UnixStream,
}

impl Carrier for Socket {
    fn more(&mut self, buffer: &mut Vec<u8>, deadline: Option<Instant>) -> Result<More, Failure> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()).max(WAIT_MIN));
        self.socket.set_read_timeout(left).context("reading from scx_artis")?;
        let begin = buffer.len();
        buffer.resize(begin + PIECE, 0);
        let read = self.socket.read(&mut buffer[begin..]);
        buffer.truncate(begin + read.as_ref().map_or(0, |read| *read));
        match read {
            Ok(0) => Ok(More::End),
            Ok(_) => Ok(More::Bytes),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => Ok(More::TimedOut),
                // nothing has come, but the deadline is not over
                ErrorKind::Interrupted => Ok(More::Bytes),
                // it died with something unread
                ErrorKind::ConnectionReset => Ok(More::End),
                _ => Err(error).context("reading from scx_artis")?,
            },
        }
    }
}
