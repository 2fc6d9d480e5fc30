// SPDX-License-Identifier: GPL-2.0-only
//! All that reads input from outside, for the fuzzer (scripts/fuzz) and for the tests below, which
//! read what it has found once more. None of it may panic, whatever the input is.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use crate::abi::artis_change;
use crate::config::rules;
use crate::control::Request;
use crate::daemon::classes::adoption::record;
use crate::daemon::classes::facts::Facts;
use crate::daemon::plain::Plain;
use crate::daemon::{kernel_threads, preempt};
use crate::feed::{Frame, Next, open_from};
use crate::model::Model;
use crate::outlets::explain::{self, Seen, Story};
use crate::outlets::{csv::Rows, json::Lines, line, metrics};

/// A reader, which takes any bytes.
pub type Reader = fn(&[u8]);

/// The readers, by name.
pub const READERS: [(&str, Reader); 6] = [
    ("control", control),
    ("frames", frames),
    ("journal", journal),
    ("proc_files", proc_files),
    ("recordings", recordings),
    ("rules", self::rules),
];

/// Bytes of an unpacked recording that are looked at: a short one may be of any size.
const UNPACKED_MAX: usize = 1 << 20;

/// What a client of the control socket says.
fn control(bytes: &[u8]) {
    let Ok(request) = serde_json::from_slice::<Request>(bytes) else { return };
    let text = serde_json::to_string(&request).expect("what was read can be written");
    let again: Request = serde_json::from_str(&text).expect("what was written can be read");
    assert_eq!(request, again);
}

/// A stream of frames, and what is shown of it.
fn frames(bytes: &[u8]) {
    let (mut rest, mut model) = (bytes, Model::default());
    while let Ok(Some((frame, after))) = Frame::split(rest) {
        show(&mut model, &frame);
        rest = after;
    }
}

/// A file of `scx_artis record`.
fn recordings(bytes: &[u8]) {
    let Ok(mut stream) = open_from(Path::new("recording"), Cursor::new(bytes.to_vec())) else {
        return;
    };
    let (mut model, mut unpacked) = (Model::default(), 0);
    while let Ok(Next::Frame(frame)) = stream.next(None) {
        unpacked += frame.bytes.len();
        if unpacked > UNPACKED_MAX {
            return;
        }
        show(&mut model, &frame);
    }
}

fn show(model: &mut Model, frame: &Frame<'_>) {
    if !model.take(frame).unwrap_or(false) {
        return;
    }
    let snapshot = Arc::new(model.snapshot().clone());
    line::render(&snapshot.machine);
    Lines::default().write(&mut Vec::new(), &snapshot).expect("written into memory");
    metrics::encode(Arc::clone(&snapshot), usize::MAX).expect("written into memory");
    let mut csv = Rows::begin(Vec::new()).expect("written into memory");
    csv.write(&snapshot).expect("written into memory");
    for task in snapshot.tasks.values() {
        let seen = Seen::new(&snapshot, Arc::clone(task));
        explain::render(&Story::of(&seen, "from a recording"), 80);
    }
}

/// What a dead daemon left: the preemption model, kernel threads, and the records of changed
/// tasks.
fn journal(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = preempt::saved(text);
        let _ = kernel_threads::changed(text);
    }
    artis_change::of_bytes(bytes).as_ref().and_then(record::change);
}

/// Files of /proc about a thread, with the names of it and of its cgroup, which users choose: the first
/// 15 bytes, and the others.
fn proc_files(bytes: &[u8]) {
    let text = |file: &str, mark: &str, name: &[u8]| {
        let (before, after) = file.split_once(mark).expect("a place for the name");
        [before.as_bytes(), name, after.as_bytes()].concat()
    };
    // as the kernel has it: prctl(2) takes names up to a zero byte, mkdir(2) no line feed for a cgroup
    let (name, path) = bytes.split_at(bytes.len().min(15));
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let path: Vec<u8> = path.iter().copied().filter(|byte| ![0, b'\n'].contains(byte)).collect();
    let escaped = name.iter().flat_map(|byte| match byte {
        b'\n' => &b"\\n"[..],
        b'\\' => b"\\\\",
        other => std::slice::from_ref(other),
    });
    let stat = text(include_str!("../../tests/fuzz/proc/stat"), "NAME", name);
    let escaped: Vec<u8> = escaped.copied().collect();
    let status = text(include_str!("../../tests/fuzz/proc/status"), "NAME", &escaped);
    let cgroup = text(include_str!("../../tests/fuzz/proc/cgroup"), "PATH", &path);
    let facts = Facts::of(1, &stat, &status, &cgroup).expect("a task, whatever its name");
    assert_eq!(facts.comm, String::from_utf8_lossy(name));
    assert!(facts.shown().len() <= 45 && facts.shown().is_ascii());
}

/// Rules as a file, and as words.
fn rules(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = rules::parse(text);
    let words: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let _ = rules::of_words(&words);
}

#[cfg(test)]
#[path = "../../tests/fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_found_is_read() {
        super::READERS.into_iter().for_each(|(name, reader)| super::corpus::read(name, reader));
    }
}
