// SPDX-License-Identifier: GPL-2.0-only
//! What a stream consists of (src/bpf/abi/record.h): frames with one kind of
//! head, whose rest is a struct of BPF's or JSON of the daemon's.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::abi::bindings as abi;
use crate::abi::bindings::{
    artis_eviction_record, artis_move_record, artis_run_record, artis_task_record,
};
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
    Eviction(artis_eviction_record),
    /// See [`kind::MOVE`].
    Move(artis_move_record),
    /// See [`kind::RUN`].
    Run(artis_run_record),
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
unsafe impl Plain for artis_eviction_record {}
// SAFETY: as above.
unsafe impl Plain for artis_move_record {}
// SAFETY: as above.
unsafe impl Plain for artis_run_record {}

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
            kind::READING => Record::Reading(Box::new(self.json()?)),
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of a record with this head, and zeroes.
    fn record(kind: u16, version: u16, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, kind, 5, &vec![0; size - HEAD]);
        bytes[2..4].copy_from_slice(&version.to_ne_bytes());
        bytes
    }

    fn first(bytes: &[u8]) -> Frame<'_> {
        Frame::split(bytes).expect("sound").expect("whole").0
    }

    #[test]
    fn heads_are_those_of_bpf() {
        let head = abi::artis_record { kind: 2, version: VERSION, size: 17, time_ns: 1 << 40 };
        let mut bytes = Vec::new();
        put(&mut bytes, 2, 1 << 40, &[9]);
        // SAFETY: as many bytes as the struct has, which is integers.
        let seen: abi::artis_record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        assert_eq!(
            (seen.kind, seen.version, seen.size, seen.time_ns),
            (head.kind, head.version, head.size, head.time_ns)
        );
    }

    #[test]
    fn records_of_older_and_newer_programs_can_be_read() {
        let whole = size_of::<artis_eviction_record>();
        let mut bytes = record(kind::EVICTION, VERSION, whole);
        bytes[whole - 8..].fill(1); // left_ns, its last field
        bytes[16..20].copy_from_slice(&77u32.to_ne_bytes());
        for (size, left_ns) in [(whole - 8, 0), (whole, 0x0101_0101_0101_0101)] {
            let Ok(Record::Eviction(seen)) = first_of(&bytes, size).record() else { panic!() };
            assert_eq!((seen.pid, seen.left_ns), (77, left_ns));
        }
        bytes.extend([3; 40]); // a field of the future
        let size = bytes.len();
        let Ok(Record::Eviction(seen)) = first_of(&bytes, size).record() else { panic!() };
        assert_eq!((seen.pid, seen.left_ns), (77, 0x0101_0101_0101_0101));
    }

    /// The frame of the first `size` of these bytes.
    fn first_of(bytes: &[u8], size: usize) -> Frame<'_> {
        Frame { kind: kind::EVICTION, version: VERSION, time_ns: 0, bytes: &bytes[..size] }
    }

    #[test]
    fn another_version_and_damage_are_told() {
        let error = first(&record(kind::MOVE, 9, 100)).record().expect_err("another version");
        let told = format!("version 9, this scx_artis reads version {VERSION}");
        assert!(error.to_string().contains(&told), "{error}");
        let mut bytes = Vec::new();
        put(&mut bytes, kind::READING, 0, b"{");
        let error = first(&bytes).record().expect_err("no JSON");
        assert!(error.to_string().contains("damaged (a frame of kind 65"), "{error}");
        let mut bytes = record(kind::TASK, VERSION, 64);
        for size in [0u32, 15, FRAME_MAX as u32 + 1] {
            bytes[4..8].copy_from_slice(&size.to_ne_bytes());
            assert!(Frame::split(&bytes).is_err(), "{size}");
        }
    }

    #[test]
    fn texts_of_a_recording_cannot_steer_the_terminal() {
        let mut bytes = Vec::new();
        let begin = br#"{"rt_cpus":"\u001b[2J","policy":{"a\nb":"\u009b2J","c":"d"}}"#;
        put(&mut bytes, kind::BEGIN, 0, begin);
        let Ok(Record::Begin(begin)) = first(&bytes).record() else { panic!() };
        assert_eq!(begin.rt_cpus, "?[2J");
        let policy = [("a?b", "?2J"), ("c", "d")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(begin.policy, policy.into());
        let mut array = serde_json::json!(["\t"]);
        make_printable(&mut array);
        assert_eq!(array, serde_json::json!(["?"]));
    }

    #[test]
    fn what_a_newer_program_says_is_no_damage() {
        let bytes = record(200, 9, 64);
        assert!(matches!(first(&bytes).record(), Ok(Record::Unknown)));
        let mut bytes = Vec::new();
        put(&mut bytes, kind::BEGIN, 0, br#"{"rt_cpus":"2-3","of_the_future":[1]}"#);
        let Ok(Record::Begin(begin)) = first(&bytes).record() else { panic!() };
        assert_eq!(begin.rt_cpus, "2-3");
    }

    proptest! {
        #[test]
        fn what_is_put_is_split(
            frames in prop::collection::vec(
                (any::<u16>(), any::<u64>(), prop::collection::vec(any::<u8>(), 0..200)), 0..20),
            cut in 0usize..4000,
        ) {
            let mut bytes = Vec::new();
            for (kind, time_ns, rest) in &frames {
                put(&mut bytes, *kind, *time_ns, rest);
            }
            let cut = cut.min(bytes.len());
            let (mut rest, mut seen) = (&bytes[..cut], Vec::new());
            while let Some((frame, after)) = Frame::split(rest).expect("sound") {
                seen.push((frame.kind, frame.time_ns, frame.bytes[HEAD..].to_vec()));
                rest = after;
            }
            // whole frames only, and all of those before the cut
            prop_assert!(seen.len() == frames.len() || rest.len() < HEAD + 200);
            prop_assert_eq!(&seen[..], &frames[..seen.len()]);
        }

        #[test]
        fn whatever_comes_is_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..3000), kind in 0u16..70) {
            if let Ok(Some((frame, _))) = Frame::split(&bytes) {
                let _ = frame.record();
            }
            let mut framed = Vec::new();
            put(&mut framed, kind, 0, &bytes);
            let _ = first(&framed).record();
            let mut model = crate::model::Model::default();
            let _ = model.take(&first(&framed));
            let _ = model.take(&first(&framed));
            let mut ends = Vec::new();
            encode(&mut ends, crate::feed::frame::kind::READING, 9, &Reading { now_ns: 9, ..Reading::default() });
            let _ = model.take(&first(&ends));
            let _ = model.take(&first(&ends));
        }
    }
}
