// SPDX-License-Identifier: GPL-2.0-only
//! What a stream consists of (src/bpf/abi/abi.h): frames with one kind of
//! head, whose rest is a struct of BPF's or JSON of the daemon's.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::abi::bindings as abi;
use crate::abi::bindings::{artis_event_record, artis_task_record};
use crate::model::{Begin, Lost, Reading};

/// Length of a head, bytes.
pub const HEAD: usize = size_of::<abi::artis_record>();
/// Longest frame, bytes; a longer one is damage. A reading of 1,024 CPUs has some 2 MB.
pub const FRAME_MAX: usize = 64 << 20;
/// Version of the frames that this program writes and reads.
pub const VERSION: u16 = abi::ARTIS_RECORD_VERSION as u16;

/// Values of `enum artis_record_kind`.
pub mod kind {
    use crate::abi::bindings as abi;

    /// What one task did until now, in totals.
    pub const TASK: u16 = abi::artis_record_kind_ARTIS_RECORD_TASK as u16;
    /// One eviction.
    pub const EVICTION: u16 = abi::artis_record_kind_ARTIS_RECORD_EVICTION as u16;
    /// A task begins to run on another CPU than before.
    pub const MOVE: u16 = abi::artis_record_kind_ARTIS_RECORD_MOVE as u16;
    /// One run of a task.
    pub const RUN: u16 = abi::artis_record_kind_ARTIS_RECORD_RUN as u16;
    /// The machine and the policy.
    pub const BEGIN: u16 = abi::artis_record_kind_ARTIS_RECORD_BEGIN as u16;
    /// The CPUs; ends an interval.
    pub const READING: u16 = abi::artis_record_kind_ARTIS_RECORD_READING as u16;
    /// Frames that did not reach this stream.
    pub const LOST: u16 = abi::artis_record_kind_ARTIS_RECORD_LOST as u16;
}

/// What is wrong with a stream.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FrameError {
    /// Written by another version of scx_artis.
    #[error(
        "the stream has records of version {seen}, this scx_artis reads version {VERSION}: their figures \
         have other meanings; use the scx_artis that wrote them"
    )]
    Version {
        /// Version of the frame.
        seen: u16,
    },
    /// Not what a scx_artis writes.
    #[error("the stream is damaged ({what}): what follows cannot be understood")]
    Damaged {
        /// What was seen.
        what: String,
    },
}

/// One frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// See [`kind`].
    pub kind: u16,
    /// See [`VERSION`].
    pub version: u16,
    /// When it was written, ns of the scheduler's clock.
    pub time_ns: u64,
    /// All of it, the head included.
    pub bytes: &'a [u8],
}

/// What a frame says.
#[derive(Clone, Debug)]
pub enum Record {
    /// See [`kind::TASK`].
    Task(Box<artis_task_record>),
    /// See [`kind::EVICTION`].
    Eviction(artis_event_record),
    /// See [`kind::MOVE`].
    Move(artis_event_record),
    /// See [`kind::RUN`].
    Run(artis_event_record),
    /// See [`kind::BEGIN`].
    Begin(Box<Begin>),
    /// See [`kind::READING`].
    Reading(Box<Reading>),
    /// See [`kind::LOST`].
    Lost(Lost),
    /// Of a kind that this program does not know: a newer one wrote it.
    Unknown,
}

/// A struct of BPF's that any bytes are valid for.
///
/// # Safety
/// It consists of integers only.
unsafe trait Plain: Copy {}

// SAFETY: integers, arrays and structs of integers; record.h says so.
unsafe impl Plain for artis_task_record {}
// SAFETY: as above.
unsafe impl Plain for artis_event_record {}

impl<'a> Frame<'a> {
    /// Splits the first frame off `bytes`. `None`: it is not all there yet.
    ///
    /// # Errors
    /// When no frame can begin like this.
    pub fn split(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, FrameError> {
        let Some(head) = bytes.first_chunk::<HEAD>() else { return Ok(None) };
        let [k0, k1, v0, v1, s0, s1, s2, s3, time @ ..] = *head;
        let size = u32::from_ne_bytes([s0, s1, s2, s3]) as usize;
        if !(HEAD..=FRAME_MAX).contains(&size) {
            return Err(FrameError::Damaged { what: format!("a frame of {size} bytes") });
        }
        let Some((frame, rest)) = bytes.split_at_checked(size) else { return Ok(None) };
        let frame = Self {
            kind: u16::from_ne_bytes([k0, k1]),
            version: u16::from_ne_bytes([v0, v1]),
            time_ns: u64::from_ne_bytes(time),
            bytes: frame,
        };
        Ok(Some((frame, rest)))
    }

    /// What it says.
    ///
    /// # Errors
    /// When it is of another version, or not what its kind says.
    pub fn record(&self) -> Result<Record, FrameError> {
        let known = [
            kind::TASK,
            kind::EVICTION,
            kind::MOVE,
            kind::RUN,
            kind::BEGIN,
            kind::READING,
            kind::LOST,
        ];
        if known.contains(&self.kind) && self.version != VERSION {
            return Err(FrameError::Version { seen: self.version });
        }
        Ok(match self.kind {
            kind::TASK => Record::Task(Box::new(self.plain())),
            kind::EVICTION => Record::Eviction(self.plain()),
            kind::MOVE => Record::Move(self.plain()),
            kind::RUN => Record::Run(self.plain()),
            kind::BEGIN => Record::Begin(Box::new(self.json()?)),
            kind::READING => {
                let reading: Box<Reading> = self.json()?;
                reading.ensure_sound().map_err(|what| FrameError::Damaged { what })?;
                Record::Reading(reading)
            }
            kind::LOST => Record::Lost(self.json()?),
            _ => Record::Unknown,
        })
    }

    /// Is it one of BPF's, and not the daemon's?
    pub fn is_of_bpf(&self) -> bool {
        self.kind < kind::BEGIN
    }

    /// The struct that it is. Structs grow at their end only: what an older writer did not
    /// know is zero, what a newer one added is left out.
    fn plain<T: Plain>(&self) -> T {
        let known = self.bytes.len().min(size_of::<T>());
        // SAFETY: T is integers only (Plain), so zeroes are valid; as many bytes are copied as
        // both have, and whatever they are, they are integers, too.
        unsafe {
            let mut plain: T = std::mem::zeroed();
            let to = std::ptr::from_mut(&mut plain).cast::<u8>();
            std::ptr::copy_nonoverlapping(self.bytes.as_ptr(), to, known);
            plain
        }
    }

    fn json<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        let rest = &self.bytes[HEAD..];
        let read = || {
            // as all that the daemon writes: no text has a control character without one of these
            if rest.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\') {
                return serde_json::from_slice(rest);
            }
            let mut value = serde_json::from_slice(rest)?;
            make_printable(&mut value);
            serde_json::from_value(value)
        };
        read().map_err(|error: serde_json::Error| FrameError::Damaged {
            what: format!("a frame of kind {}: {error}", self.kind),
        })
    }
}

/// A recording may have texts of any origin: what could steer a terminal becomes `?`.
fn make_printable(value: &mut Value) {
    let printable = |text: &str| text.replace(char::is_control, "?");
    match value {
        Value::String(text) => *text = printable(text),
        Value::Array(values) => values.iter_mut().for_each(make_printable),
        Value::Object(fields) => {
            if fields.keys().any(|key| key.contains(char::is_control)) {
                let fresh = std::mem::take(fields).into_iter();
                *fields = fresh.map(|(key, value)| (printable(&key), value)).collect();
            }
            fields.values_mut().for_each(make_printable);
        }
        _ => {}
    }
}

/// Appends a frame with the JSON of `payload` to `stream`.
pub fn encode(stream: &mut Vec<u8>, kind: u16, time_ns: u64, payload: &impl Serialize) {
    // cannot fail: what the daemon says has keys that are text, and goes into memory
    let payload = serde_json::to_vec(payload).unwrap_or_default();
    put(stream, kind, time_ns, &payload);
}

/// Appends a frame whose head is followed by `rest`.
pub fn put(stream: &mut Vec<u8>, kind: u16, time_ns: u64, rest: &[u8]) {
    let size = u32::try_from(HEAD + rest.len()).unwrap_or(u32::MAX);
    stream.extend(kind.to_ne_bytes());
    stream.extend(VERSION.to_ne_bytes());
    stream.extend(size.to_ne_bytes());
    stream.extend(time_ns.to_ne_bytes());
    stream.extend(rest);
}

#[cfg(test)]
mod tests;
