// SPDX-License-Identifier: GPL-2.0-only
//! CSV: a row for each task at the end of each interval. The columns are
//! `time_s`, the end of the interval in seconds since 1970 (UTC), and the
//! figures of [`TaskMetrics`], whose names say their units (docs/statistics.md).
//! A text that a spreadsheet would take for a formula has a `'` before it: users
//! choose the names of their tasks.

use std::borrow::Cow;
use std::io::Write;

use csv::Writer;

use crate::model::{Described, Snapshot, TaskMetrics, Value};

/// Writes the intervals of one stream.
#[derive(Debug)]
pub struct Rows<W: Write> {
    out: Writer<W>,
}

impl<W: Write> Rows<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn begin(out: W) -> csv::Result<Self> {
        let mut out = Writer::from_writer(out);
        let names = TaskMetrics::FIELDS.iter().map(|field| field.name);
        out.write_record(["time_s"].into_iter().chain(names))?;
        out.flush()?;
        Ok(Self { out })
    }

    /// Writes the interval that `snapshot` is the end of.
    ///
    /// # Errors
    /// When the output cannot be written to.
    pub fn write(&mut self, snapshot: &Snapshot) -> csv::Result<()> {
        let time_s = format!("{:.3}", snapshot.time_s());
        for task in snapshot.tasks.values() {
            self.out.write_field(&time_s)?;
            for value in task.metrics.values() {
                match value {
                    Value::Text(text) => self.out.write_field(plain(text).as_bytes())?,
                    Value::Int(number) => self.out.write_field(number.to_string())?,
                    Value::Float(number) => self.out.write_field(number.to_string())?,
                }
            }
            self.out.write_record(None::<&[u8]>)?; // ends the row
        }
        Ok(self.out.flush()?)
    }
}

/// `text` as what it is, for spreadsheets.
fn plain(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::Task;

    #[test]
    fn heads_say_their_units() {
        for field in TaskMetrics::FIELDS {
            let suffix = match field.unit {
                "" => continue,
                "%" => "_pct",
                "us" => "_us",
                "s" => "_s",
                "1/s" => "_per_s",
                other => panic!("{}: what is {other}?", field.name),
            };
            assert!(field.name.ends_with(suffix), "{} in {}", field.name, field.unit);
        }
    }

    #[test]
    fn names_of_tasks_cannot_break_a_row() {
        let metrics = TaskMetrics { pid: 7, comm: "a,\"b".into(), nice: -3, ..Default::default() };
        let task = Task { metrics, ..Task::default() };
        let snapshot = Snapshot { tasks: [(7, Arc::new(task))].into(), ..Snapshot::default() };
        let mut out = Vec::new();
        let mut rows = Rows::begin(&mut out).expect("a head");
        rows.write(&snapshot).expect("rows");
        rows.write(&Snapshot::default()).expect("no rows");
        drop(rows);
        let mut read = csv::Reader::from_reader(out.as_slice());
        let heads = read.headers().expect("heads").clone();
        let rows: Vec<_> = read.records().collect::<Result<_, _>>().expect("whole rows");
        assert_eq!(rows.len(), 1);
        let at = |name: &str| &rows[0][heads.iter().position(|h| h == name).expect("a column")];
        assert_eq!(
            (at("pid"), at("comm"), at("nice"), at("time_s")),
            ("7", "a,\"b", "-3", "0.000")
        );
    }

    #[test]
    fn names_of_tasks_are_no_formulas() {
        for text in ["=1+1", "+1", "-bash", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(plain(text), format!("'{text}"));
        }
        for text in ["", "bash", "a=b", "'=1", "kworker/0:1-events"] {
            assert_eq!(plain(text), text);
        }
    }
}
