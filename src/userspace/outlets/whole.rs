// SPDX-License-Identifier: GPL-2.0-only
//! A whole recording, interval by interval, and the files made of it.

use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::path::Path;

use page::link;

use crate::exit::Failure;
use crate::feed::{self, Wanted};
use crate::model::{Event, Snapshot};

/// One interval of a recording.
pub struct Interval<'a> {
    /// What there was at its end.
    pub snapshot: &'a Snapshot,
    /// What happened in it, the oldest first.
    pub events: Vec<&'a Event>,
    /// Events of it that are not kept.
    pub left_out: u64,
}

impl<'a> Interval<'a> {
    /// The events of `snapshot` from number `seen` on.
    pub fn since(snapshot: &'a Snapshot, seen: u64) -> Self {
        let fresh = snapshot.nr_events.saturating_sub(seen);
        let kept = usize::try_from(fresh).unwrap_or(usize::MAX).min(snapshot.events.len());
        let events = snapshot.events.iter().skip(snapshot.events.len() - kept).collect();
        Self { snapshot, events, left_out: fresh - kept as u64 }
    }

    /// When it began: seconds since the scheduler did.
    pub fn begin_s(&self) -> f64 {
        self.snapshot.machine.uptime_s - self.snapshot.machine.interval_s
    }
}

/// Gives each interval of the recording at `path` to `take`. Returns how many there were.
///
/// # Errors
/// When it cannot be read or has no whole interval, and those of `take`.
pub fn each_interval(
    path: &Path,
    mut take: impl FnMut(&Interval) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut source = feed::source(Some(path), Wanted::default())?;
    let (mut seen, mut intervals) = (0, 0);
    while let Some(snapshot) = source.next(None)? {
        take(&Interval::since(snapshot, seen))?;
        seen = snapshot.nr_events;
        intervals += 1;
    }
    match intervals {
        0 => Err(Failure::Told {
            code: 2,
            text: format!(
                "{} has no whole interval: record for longer (scx_artis record FILE --for SECS)",
                path.display()
            ),
        }),
        n => Ok(n),
    }
}

/// Where the result goes: a file, or stdout for `-`.
///
/// # Errors
/// When the file cannot be made.
pub fn create<'a>(path: &Path, out: &'a mut dyn Write) -> Result<Box<dyn Write + 'a>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(out)));
    }
    let cannot = |why: &dyn Display| Failure::Told {
        code: 2,
        text: format!("{} cannot be written: {why}", path.display()),
    };
    let place = link::follow(path).map_err(|why| cannot(&why))?;
    let file = place.create().map_err(|error| cannot(&error))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{lchown, symlink};

    use super::*;
    use crate::model::What;

    #[test]
    fn only_fresh_events_and_who_is_missing() {
        let event = |at_s| Event { at_s, pid: 1, comm: "x".into(), what: What::Exit };
        let mut snapshot = Snapshot {
            nr_events: 7,
            events: (0..4).map(f64::from).map(event).collect(),
            ..Snapshot::default()
        };
        (snapshot.machine.uptime_s, snapshot.machine.interval_s) = (9.0, 2.0);
        let interval = Interval::since(&snapshot, 5);
        assert_eq!(interval.events.iter().map(|e| e.at_s).collect::<Vec<_>>(), [2.0, 3.0]);
        assert_eq!((interval.left_out, interval.begin_s()), (0, 7.0));
        let interval = Interval::since(&snapshot, 0);
        assert_eq!((interval.events.len(), interval.left_out), (4, 3));
    }

    #[test]
    fn a_link_of_somebody_else_is_not_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").expect("written");
        symlink(&file, &link).expect("linked");
        let write = || {
            let mut none = Vec::new();
            let mut out = create(&link, &mut none).map_err(|error| error.to_string())?;
            out.write_all(b"new").and_then(|()| out.flush()).map_err(|error| error.to_string())
        };
        write().expect("an own link is followed");
        assert_eq!(fs::read_to_string(&file).expect("read"), "new");
        fs::write(&file, "old").expect("written");
        if lchown(&link, Some(65534), None).is_err() {
            return; // only root can give it away
        }
        let text = write().expect_err("it is followed");
        assert!(text.contains("link of user 65534"), "{text}");
        assert_eq!(fs::read_to_string(&file).expect("read"), "old");
    }
}
