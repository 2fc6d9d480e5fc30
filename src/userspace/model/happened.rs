// SPDX-License-Identifier: GPL-2.0-only
//! From records of events to events.

use super::figures::{at_s, name, why};
use super::task::cause_name_on;
use super::{Begin, Event, What};
use crate::abi::bindings::{artis_event_record, artis_task_record};

/// Longest text of a note, bytes: the values of a recording may be as long as a frame.
pub(super) const NOTE_MAX: usize = 1024;

/// From one moment to a later one, us. Clocks of two CPUs may differ a little.
fn us(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns) as f64 / 1e3
}

pub(super) fn eviction(record: &artis_event_record, begin: &Begin) -> Event {
    Event {
        at_s: at_s(begin, record.head.time_ns),
        pid: record.pid.into(),
        comm: name(&record.comm),
        what: What::Eviction {
            cause: cause_name_on(&begin.arch, record.what),
            from: record.from.into(),
            to: record.to.into(),
            left_us: us(record.begin_ns, record.left_ns),
            arrived_us: us(record.begin_ns, record.head.time_ns),
        },
    }
}

pub(super) fn moved(record: &artis_event_record, begin: &Begin) -> Event {
    Event {
        at_s: at_s(begin, record.head.time_ns),
        pid: record.pid.into(),
        comm: name(&record.comm),
        what: What::Move {
            why: why(record.what as usize),
            from: record.from.into(),
            to: record.to.into(),
            wait_us: us(record.begin_ns, record.head.time_ns),
        },
    }
}

pub(super) fn ran(record: &artis_event_record, begin: &Begin) -> Event {
    Event {
        at_s: at_s(begin, record.head.time_ns),
        pid: record.pid.into(),
        comm: name(&record.comm),
        what: What::Run {
            cpu: record.to.into(),
            run_us: us(record.begin_ns, record.head.time_ns),
            rt: record.rt != 0,
        },
    }
}

pub(super) fn exited(record: &artis_task_record, begin: &Begin) -> Event {
    Event {
        at_s: at_s(begin, record.head.time_ns),
        pid: record.pid.into(),
        comm: name(&record.comm),
        what: What::Exit,
    }
}

/// A text that is too long ends in "...".
pub(super) fn note(at_s: f64, mut text: String) -> Event {
    if text.len() > NOTE_MAX {
        text.truncate(text.floor_char_boundary(NOTE_MAX - 3));
        text += "...";
        text.shrink_to_fit();
    }
    Event { at_s, pid: 0, comm: String::new(), what: What::Note { text } }
}
