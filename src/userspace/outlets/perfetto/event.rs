// SPDX-License-Identifier: GPL-2.0-only
//! One trace event.

use serde::Serialize;
use serde_json::{Map, Value};

/// A track: a thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Track {
    /// Process.
    pub pid: u64,
    /// Thread.
    pub tid: u64,
}

/// A trace event. Absent members do not apply to its kind.
#[derive(Debug, Default, Serialize)]
pub struct TraceEvent {
    ph: &'static str,
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'static str,
    pid: u64,
    tid: u64,
    ts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// Scope of an instant: t thread, g global.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    /// Where an arrow ends: e, at the slice around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    args: Map<String, Value>,
}

/// Whole nanoseconds, in microseconds.
fn to_ns(us: f64) -> f64 {
    (us * 1e3).round() / 1e3
}

impl TraceEvent {
    fn on(track: Track, ph: &'static str, name: &str, ts_us: f64) -> Self {
        Self {
            ph,
            name: name.to_owned(),
            pid: track.pid,
            tid: track.tid,
            ts: to_ns(ts_us),
            ..Self::default()
        }
    }

    /// Something that took time.
    pub fn slice(track: Track, cat: &'static str, name: &str, ts_us: f64, dur_us: f64) -> Self {
        Self { cat, dur: Some(to_ns(dur_us)), ..Self::on(track, "X", name, ts_us) }
    }

    /// Something that took none.
    pub fn instant(track: Track, cat: &'static str, name: &str, ts_us: f64) -> Self {
        Self { cat, s: Some("t"), ..Self::on(track, "i", name, ts_us) }
    }

    /// Something about the whole machine.
    pub fn note(name: &str, ts_us: f64) -> Self {
        let nobody = Track { pid: 0, tid: 0 };
        Self { cat: "note", s: Some("g"), ..Self::on(nobody, "i", name, ts_us) }
    }

    /// An arrow's tail.
    pub fn arrow_begin(track: Track, name: &str, ts_us: f64, id: u64) -> Self {
        Self { cat: "eviction", id: Some(id), ..Self::on(track, "s", name, ts_us) }
    }

    /// Its head.
    pub fn arrow_end(track: Track, name: &str, ts_us: f64, id: u64) -> Self {
        Self { cat: "eviction", id: Some(id), bp: Some("e"), ..Self::on(track, "f", name, ts_us) }
    }

    /// Figures from `ts_us` on.
    pub fn counter(pid: u64, name: &str, ts_us: f64, figures: &[(&str, f64)]) -> Self {
        let event = Self::on(Track { pid, tid: 0 }, "C", name, ts_us);
        figures.iter().fold(event, |event, (name, figure)| event.with(name, *figure))
    }

    /// A name of a process or thread, or its place among the others.
    pub fn about(track: Track, what: &str, value: impl Into<Value>) -> Self {
        let key = if what.ends_with("_sort_index") { "sort_index" } else { "name" };
        Self::on(track, "M", what, 0.0).with(key, value)
    }

    /// With a fact.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.args.insert(key.to_owned(), value.into());
        self
    }
}
