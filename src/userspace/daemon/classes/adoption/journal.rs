// SPDX-License-Identifier: GPL-2.0-only
//! The file that remembers what was changed of which task. A record is appended before the change,
//! by one write(2) of one line of JSON; what follows a cut-off line was never done. So it is right
//! at every instant at which this program may be killed.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::attr::Was;
use crate::daemon::classes::facts::TaskId;

/// As many records that say nothing any more are borne with; then the file is written anew.
const STALE_MAX: usize = 4096;
/// A new number at each boot: process ids and times of another boot are not ours.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What was changed of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was adopted, and was this.
    Adopted(Was),
    /// It was bound to the CPUs `to`, and might run on `from`, both as lists.
    Confined {
        /// Its process.
        tgid: i32,
        /// Before.
        from: String,
        /// Now.
        to: String,
    },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    /// First of each file.
    Boot(String),
    /// From now on this is what was changed of it.
    Changed { id: TaskId, change: Change },
    /// It is again what it was, or its own affair.
    Done(TaskId),
}

/// The file, and what it says. The default one has no file: nothing can be changed.
#[derive(Debug, Default)]
pub struct Journal {
    path: PathBuf,
    /// `None`: nothing was ever changed.
    file: Option<File>,
    /// What was changed of whom.
    held: BTreeMap<TaskId, Change>,
    records: usize,
}

impl Journal {
    /// Reads the file at `path`, which may be absent. What it says of another boot is void.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let boot = boot_id()?;
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes.with_context(|| format!("reading {}", path.display()))?,
        };
        let (held, records) = read(&bytes, &boot);
        Ok(Self { path: path.to_owned(), file: None, held, records })
    }

    /// Was anything changed, by us or by a dead predecessor, that may not be as it was?
    pub fn is_there(&self) -> bool {
        self.file.is_some() || self.path.exists()
    }

    /// What was changed of whom.
    pub fn held(&self) -> &BTreeMap<TaskId, Change> {
        &self.held
    }

    /// Remembers what is about to be changed.
    ///
    /// # Errors
    /// When it cannot be written: the change must not be made.
    pub fn note(&mut self, id: TaskId, change: Change) -> Result<()> {
        self.append(&Record::Changed { id, change: change.clone() })?;
        self.held.insert(id, change);
        Ok(())
    }

    /// Forgets a task: all is as it was, or is its own affair from now on.
    ///
    /// # Errors
    /// When it cannot be written. In memory it is forgotten.
    pub fn done(&mut self, id: TaskId) -> Result<()> {
        if self.held.remove(&id).is_none() {
            return Ok(());
        }
        self.append(&Record::Done(id))
    }

    /// Forgets those of whom `lives` says no.
    pub fn forget_dead(&mut self, lives: impl Fn(TaskId) -> bool) {
        // no record: a reader finds out himself that they are dead
        self.held.retain(|id, _| lives(*id));
    }

    /// Would the file better be written anew?
    pub fn is_stale(&self) -> bool {
        self.records > STALE_MAX + 2 * self.held.len()
    }

    /// Writes the file anew, with what still matters.
    ///
    /// # Errors
    /// When that cannot be done; the old one is in force then.
    pub fn rewrite(&mut self) -> Result<()> {
        let draft = self.draft();
        let mut text = line(&Record::Boot(boot_id()?))?;
        for (id, change) in &self.held {
            text.extend(line(&Record::Changed { id: *id, change: change.clone() })?);
        }
        fs::write(&draft, text)
            .and_then(|()| OpenOptions::new().append(true).open(&draft))
            .and_then(|file| {
                fs::rename(&draft, &self.path)?;
                self.file = Some(file);
                Ok(())
            })
            .with_context(|| self.why())?;
        self.records = self.held.len();
        Ok(())
    }

    /// Removes the file: nothing is changed any more.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove(&mut self) -> Result<()> {
        self.file = None;
        self.held.clear();
        let _ = fs::remove_file(self.draft()); // of one who was killed while he wrote it anew
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.path.display()))
            }
            _ => Ok(()),
        }
    }

    fn append(&mut self, record: &Record) -> Result<()> {
        if self.file.is_none() {
            self.rewrite()?; // also gets rid of a cut-off line
        }
        let bytes = line(record)?;
        let file = self.file.as_mut().context("the journal of changed tasks is not open")?;
        let written = file.write(&bytes).with_context(|| self.path.display().to_string());
        if written.as_ref().is_ok_and(|written| *written == bytes.len()) {
            self.records += 1;
            return Ok(());
        }
        // the next record must not be glued to the half of this one
        self.file = None;
        written?;
        Err(io::Error::from(io::ErrorKind::StorageFull)).with_context(|| self.why())
    }

    fn draft(&self) -> PathBuf {
        self.path.with_extension("draft")
    }

    fn why(&self) -> String {
        format!(
            "writing {}, without which changed tasks could not be put back",
            self.path.display()
        )
    }
}

fn boot_id() -> Result<String> {
    let id = fs::read_to_string(BOOT_ID).with_context(|| format!("reading {BOOT_ID}"))?;
    Ok(id.trim().to_owned())
}

fn line(record: &Record) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What whole lines say, in their order, and how many they are.
fn read(bytes: &[u8], boot: &str) -> (BTreeMap<TaskId, Change>, usize) {
    let mut held = BTreeMap::new();
    let mut records = 0;
    let mut ours = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // without its end it was not written whole, whatever it looks like
        let record = line.strip_suffix(b"\n").map(serde_json::from_slice);
        match record {
            Some(Ok(Record::Boot(id))) => ours = id == boot,
            Some(Ok(Record::Changed { id, change })) if ours => {
                held.insert(id, change);
                records += 1;
            }
            Some(Ok(Record::Done(id))) if ours => {
                held.remove(&id);
                records += 1;
            }
            Some(Ok(_)) | None => {}
            Some(Err(error)) => log::warn!(
                "a record of changed tasks is damaged ({error}), and left out: {}",
                String::from_utf8_lossy(line).trim_end()
            ),
        }
    }
    (held, records)
}

#[cfg(test)]
mod tests;
