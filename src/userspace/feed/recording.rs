// SPDX-License-Identifier: GPL-2.0-only
//! A stream in a file: the same frames, through gzip.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::frame::{Frame, kind};
use super::stream::{Carrier, More, Next, Stream};
use crate::exit::Failure;

/// Bytes that are unpacked at a time.
const PIECE: u64 = 64 * 1024;
/// What any gzip file begins with (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A file that a stream is written to.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: GzEncoder<File>,
}

impl Recorder {
    /// Makes the file, for its owner only: it has the names of all tasks, as the feed, which others
    /// may not read either.
    ///
    /// # Errors
    /// When it is there already, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let mut new = OpenOptions::new();
        let file = new.write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
            let what = match error.kind() {
                ErrorKind::AlreadyExists => {
                    "is there already, and is not overwritten: remove it or name another file"
                        .into()
                }
                _ => format!("cannot be made ({error}): nothing was recorded"),
            };
            Failure::Told { code: 2, text: format!("{} {what}", path.display()) }
        })?;
        // the daemon's machine has other things to do than to pack well
        Ok(Self { path: path.to_owned(), file: GzEncoder::new(file, Compression::fast()) })
    }

    /// Adds a frame. At the end of an interval all of it goes to the file: whoever is killed
    /// leaves whole intervals.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        let written = self.file.write_all(frame.bytes);
        let written = match frame.kind {
            kind::READING => written.and_then(|()| self.file.flush()),
            _ => written,
        };
        Ok(written.with_context(|| self.complaint())?)
    }

    /// Ends the file in good order. Returns its size, bytes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self) -> Result<u64, Failure> {
        let complaint = self.complaint();
        self.file.try_finish().with_context(|| complaint.clone())?;
        Ok(self.file.get_ref().metadata().context(complaint)?.len())
    }

    fn complaint(&self) -> String {
        format!(
            "writing {} (what is in it up to the last interval can be read)",
            self.path.display()
        )
    }
}

/// Opens a recording: all of its frames.
///
/// # Errors
/// When it cannot be read, or is none.
pub fn open(path: &Path) -> Result<Stream, Failure> {
    open_from(path, File::open(path).map_err(|error| unreadable(path, &error))?)
}

/// The same of a file that is open; `path` names it in messages.
///
/// # Errors
/// See [`open`].
pub(crate) fn open_from(
    path: &Path,
    mut file: impl Read + Send + 'static,
) -> Result<Stream, Failure> {
    let mut magic = Vec::new();
    let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic);
    read.map_err(|error| unreadable(path, &error))?;
    if magic != MAGIC {
        return Err(told(path, "is no recording: scx_artis record FILE makes one"));
    }
    let file = GzDecoder::new(BufReader::new(io::Cursor::new(MAGIC).chain(file)));
    let mut stream = Stream::new(Recording { path: path.to_owned(), file, fault: None });
    match stream.peek(None) {
        Ok(Next::Frame(frame)) if frame.kind == kind::BEGIN => Ok(stream),
        _ => Err(told(path, "holds no recording: scx_artis record FILE makes one")),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    told(path, &format!("cannot be read: {error}"))
}

fn told(path: &Path, what: &str) -> Failure {
    Failure::Told { code: 2, text: format!("{} {what}", path.display()) }
}

struct Recording<R> {
    path: PathBuf,
    file: GzDecoder<R>,
    /// Why nothing comes any more, which is told after what came before.
    fault: Option<io::Error>,
}

impl<R: Read + Send> Carrier for Recording<R> {
    fn more(&mut self, buffer: &mut Vec<u8>, _deadline: Option<Instant>) -> Result<More, Failure> {
        let begin = buffer.len();
        if self.fault.is_none() {
            self.fault = (&mut self.file).take(PIECE).read_to_end(buffer).err();
        }
        if buffer.len() > begin {
            return Ok(More::Bytes);
        }
        match self.fault.take() {
            None => Ok(More::End),
            Some(error) if error.kind() == ErrorKind::UnexpectedEof => {
                log::warn!(
                    "{} is cut off (was scx_artis record killed?): it is read to its last whole interval",
                    self.path.display()
                );
                Ok(More::End)
            }
            Some(error) => Err(error)
                .with_context(|| format!("reading {}, which is damaged", self.path.display()))?,
        }
    }
}
