// SPDX-License-Identifier: GPL-2.0-only
//! Puts tasks back that have a record of what was changed of them ([`super::changes`]).

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::attr;
use super::changes::Left;
use super::confine::bind;
use super::record::Change;
use crate::daemon::classes::facts::{Facts, TaskId};

/// What became of the tasks that had a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// So many were put back.
    pub restored: usize,
    /// So many could not be, each of which was named in a warning: all records stay pinned.
    pub failed: usize,
}

impl Repaired {
    /// How many were put back.
    ///
    /// # Errors
    /// When some could not be.
    pub fn all(self) -> Result<usize> {
        let Self { restored, failed } = self;
        ensure!(
            failed == 0,
            "{failed} tasks could not be put back as they were, for the reasons above: they are \
             still remembered, and 'scx_artis restore' tries again"
        );
        Ok(restored)
    }
}

/// Puts back all tasks of which a record is pinned below `dir`: a daemon's own, or those that a
/// dead one left. The caller holds the lock that keeps other daemons away. The records are removed
/// if none is needed any more.
///
/// # Errors
/// When the records cannot be read or removed.
pub fn repair(dir: &Path) -> Result<Repaired> {
    let repaired = put_all_back(dir)?;
    if repaired.failed == 0
        && let Some(left) = Left::open(dir)?
    {
        left.remove()?;
    }
    Ok(repaired)
}

/// The same; the records stay.
///
/// # Errors
/// When the records cannot be read.
pub fn put_all_back(dir: &Path) -> Result<Repaired> {
    let Some(left) = Left::open(dir)? else { return Ok(Repaired::default()) };
    left.take_over()?;
    let Repaired { mut restored, mut failed } = Repaired::default();
    let mut seen = BTreeSet::new();
    // until none is found: a task may have forked before it was put back
    loop {
        let todo: Vec<_> = left.all()?.into_iter().filter(|(id, _)| !seen.contains(id)).collect();
        let mut found = false;
        for (id, change) in todo {
            match put_back(&left, id, &change) {
                Ok(false) => continue,
                Ok(true) => restored += 1,
                Err(error) => {
                    log::warn!("task {} could not be put back: {error:#}", id.tid);
                    failed += 1;
                }
            }
            found = true;
            seen.insert(id);
        }
        if !found {
            break;
        }
    }
    let lost = left.lost()?;
    if lost > 0 {
        log::warn!(
            "{lost} children of changed tasks were not remembered, since too many tasks were: they \
             stay as they are"
        );
    }
    Ok(Repaired { restored, failed })
}

/// Returns whether it was: one that has ended, or is what it was, is left alone. (Of one that was
/// changed by others there is no record.)
fn put_back(left: &Left, id: TaskId, change: &Change) -> Result<bool> {
    if !id.lives()? {
        return Ok(false);
    }
    let done = match change {
        Change::Adopted(was) => {
            if attr::get(id.tid)?.is_none_or(|attr| attr::is_realtime(&attr)) {
                return Ok(false);
            }
            was.give_back(left.at(id)?)
        }
        Change::Confined { from, nr_to } => {
            if Facts::read(id.tid)?.is_none_or(|task| task.cpus.len() != *nr_to) {
                return Ok(false);
            }
            bind(left.at(id)?, from)
        }
    };
    match done {
        Err(gone) if attr::is_gone(&gone) => Ok(false),
        done => done.map(|()| true).with_context(|| format!("{change:?}")),
    }
}
