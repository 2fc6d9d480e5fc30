// SPDX-License-Identifier: GPL-2.0-only
//! One JSON object a line for each interval, and the schema that documents it
//! (docs/stats-schema.json).

use std::io::{self, Write};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::model::{Begin, CauseMetrics, Event, Lost, Metrics, Snapshot, Task, TaskMetrics};

/// Version of a line: moves when something is renamed, removed, or changes its meaning. Fields
/// may be added at any time.
pub const SCHEMA: u32 = 3;

/// One interval of scx_artis: an object on a line of its own.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "scx_artis statistics")]
struct Line<'a> {
    /// Version of this format.
    schema: u32,
    /// End of the interval: seconds since 1970, UTC.
    time_s: f64,
    /// What is observed: the program, the kernel, the partition, the policy.
    begin: &'a Begin,
    /// The machine, and its CPUs by id.
    machine: &'a Metrics,
    /// The tasks, by thread id in ascending order.
    tasks: Vec<TaskLine<'a>>,
    /// Events up to the end of the interval, since the watch began.
    nr_events: u64,
    /// The events of this interval, the oldest first. Fewer than `nr_events` moved by: there
    /// were more than are remembered.
    events: Vec<&'a Event>,
    /// Records that did not arrive, since the watch began.
    lost: Lost,
}

/// One task.
#[derive(Serialize, JsonSchema)]
struct TaskLine<'a> {
    #[serde(flatten)]
    metrics: &'a TaskMetrics,
    /// The causes of its attempts, most attempts first.
    causes: &'a [CauseMetrics],
}

impl<'a> From<&'a Task> for TaskLine<'a> {
    fn from(task: &'a Task) -> Self {
        Self { metrics: &task.metrics, causes: &task.causes }
    }
}

/// Writes the intervals of one stream.
#[derive(Debug, Default)]
pub struct Lines {
    /// Events that were written, or are older than this.
    events: u64,
}

impl Lines {
    /// Writes the interval that `snapshot` is the end of, with a line feed.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn write(&mut self, out: &mut impl Write, snapshot: &Snapshot) -> io::Result<()> {
        // fewer than before: the watch began anew
        let fresh = snapshot.nr_events.checked_sub(self.events).unwrap_or(snapshot.nr_events);
        self.events = snapshot.nr_events;
        let known = snapshot.events.len();
        let line = Line {
            schema: SCHEMA,
            time_s: snapshot.time_s(),
            begin: &snapshot.begin,
            machine: &snapshot.machine,
            tasks: snapshot.tasks.values().map(|task| TaskLine::from(&**task)).collect(),
            nr_events: snapshot.nr_events,
            events: snapshot
                .events
                .iter()
                .skip(known.saturating_sub(usize::try_from(fresh).unwrap_or(known)))
                .collect(),
            lost: snapshot.lost,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    }
}

/// JSON Schema of a line.
#[must_use]
pub fn schema() -> Schema {
    // as it is written: fields with a default are there, too
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<Line<'_>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::What;

    fn event(at_s: f64) -> Event {
        Event { at_s, pid: 7, comm: "hog".into(), what: What::Exit }
    }

    fn write(lines: &mut Lines, snapshot: &Snapshot) -> serde_json::Value {
        let mut out = Vec::new();
        lines.write(&mut out, snapshot).expect("written");
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&out).expect("JSON")
    }

    #[test]
    fn an_event_is_in_one_line_only() {
        let mut lines = Lines::default();
        let mut snapshot = Snapshot { nr_events: 9, ..Snapshot::default() };
        snapshot.events = [event(1.0), event(2.0)].into(); // 7 more are forgotten
        assert_eq!(write(&mut lines, &snapshot)["events"].as_array().map(Vec::len), Some(2));
        assert_eq!(write(&mut lines, &snapshot)["events"].as_array().map(Vec::len), Some(0));
        snapshot.events.push_back(event(3.0));
        snapshot.nr_events += 1;
        let line = write(&mut lines, &snapshot);
        assert_eq!(line["events"].as_array().map(Vec::len), Some(1));
        assert_eq!(line["events"][0]["at_s"], 3.0);
        assert_eq!(line["events"][0]["event"], "exit");
        (snapshot.nr_events, snapshot.events) = (1, [event(0.5)].into());
        let anew = write(&mut lines, &snapshot);
        assert_eq!(anew["events"][0]["at_s"], 0.5, "of a watch that began anew");
    }
}
