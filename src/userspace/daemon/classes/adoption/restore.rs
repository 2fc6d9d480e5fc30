// SPDX-License-Identifier: GPL-2.0-only
//! Puts tasks back: those that the journal remembers, and children of theirs that it does not.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::attr::{self, Was};
use super::confine::bind;
use super::journal::{Change, Journal};
use crate::config::CpuSet;
use crate::daemon::classes::facts::{Facts, TaskId};

/// Passes over all tasks: each may find children of those that the one before had not reached yet.
const PASSES_MAX: u32 = 64;

/// Puts back what a dead predecessor's file `state` remembers. The caller holds the lock that shows
/// it dead. Returns how many tasks were put back.
///
/// # Errors
/// When the file cannot be read, or a task not be put back. Then the file stays.
pub fn repair(state: &Path) -> Result<usize> {
    all(&mut Journal::open(state)?)
}

/// Puts all tasks back that still live and are as they were left, and removes the file. Returns how
/// many.
///
/// # Errors
/// When one could not be put back; the others are, and the file stays.
pub(super) fn all(journal: &mut Journal) -> Result<usize> {
    if !journal.is_there() {
        return Ok(0);
    }
    let mut restored = 0;
    let mut failed = Vec::new();
    for _ in 0..PASSES_MAX {
        // before anybody is forgotten by whom they are known
        note_children(journal, &failed)?;
        let mut todo = journal.held().clone();
        todo.retain(|id, _| !failed.contains(id));
        if todo.is_empty() {
            break;
        }
        for (id, change) in todo {
            match put_back(id, &change) {
                Ok(changed) => {
                    restored += usize::from(changed);
                    journal.done(id)?;
                }
                Err(error) => {
                    log::warn!("task {} could not be put back: {error:#}", id.tid);
                    failed.push(id);
                }
            }
        }
    }
    if !failed.is_empty() {
        bail!("{} tasks could not be put back as they were", failed.len());
    }
    journal.remove()?;
    Ok(restored)
}

/// Returns whether it was: one that has ended, or was changed since by others, is left alone.
fn put_back(id: TaskId, change: &Change) -> Result<bool> {
    if !id.lives() {
        return Ok(false);
    }
    let done = match change {
        Change::Adopted(was) => {
            if !attr::get(id.tid)?.is_some_and(|attr| was.is_as_left(&attr)) {
                return Ok(false);
            }
            was.give_back(id.tid)
        }
        Change::Confined { from, to, .. } => {
            let (from, to): (CpuSet, CpuSet) = (from.parse()?, to.parse()?);
            if Facts::read(id.tid)?.is_none_or(|task| task.cpus != to) {
                return Ok(false);
            }
            bind(id.tid, &from)
        }
    };
    match done {
        Err(gone) if attr::is_gone(&gone) => Ok(false),
        done => done.map(|()| true).with_context(|| format!("{change:?}")),
    }
}

/// Those whose attributes say that they are children of adopted tasks, and those of confined
/// processes, or children of such, that have the CPUs of these.
fn note_children(journal: &mut Journal, failed: &[TaskId]) -> Result<()> {
    let confined: Vec<(i32, String, CpuSet)> = journal
        .held()
        .iter()
        .filter_map(|(id, change)| match change {
            // the process of one that is gone may be another by now
            Change::Confined { tgid, from, to } if id.lives() => {
                Some((*tgid, from.clone(), to.parse().ok()?))
            }
            _ => None,
        })
        .collect();
    for tid in threads()? {
        let by_code = attr::get(tid)?.as_ref().and_then(Was::by_code);
        let change = match by_code {
            Some(was) => Some(Change::Adopted(was)),
            None if confined.is_empty() => None,
            None => Facts::read(tid)?.and_then(|task| {
                let is_theirs = |(tgid, _, to): &&(i32, String, CpuSet)| {
                    [task.tgid, task.ppid].contains(tgid) && task.cpus == *to
                };
                let (_, from, to) = confined.iter().find(is_theirs)?;
                let (from, to) = (from.clone(), to.to_string());
                Some(Change::Confined { tgid: task.tgid, from, to })
            }),
        };
        let Some((change, id)) = change.zip(TaskId::now(tid)) else { continue };
        if !journal.held().contains_key(&id) && !failed.contains(&id) {
            journal.note(id, change)?;
        }
    }
    Ok(())
}

/// All threads of this machine.
fn threads() -> Result<Vec<i32>> {
    let mut all = Vec::new();
    for process in numbers(Path::new("/proc")).context("reading /proc")? {
        // whoever ends meanwhile is no error
        all.extend(
            numbers(&Path::new("/proc").join(process.to_string()).join("task")).unwrap_or_default(),
        );
    }
    Ok(all)
}

/// The entries of a directory whose names are numbers.
fn numbers(path: &Path) -> std::io::Result<Vec<i32>> {
    let entries = fs::read_dir(path)?.flatten();
    Ok(entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A thread of this process that is bound to `cpus` and lives while this does.
    struct Task {
        id: TaskId,
        _alive: mpsc::Sender<()>,
    }

    fn task(cpus: &CpuSet) -> Task {
        let (alive, end) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).expect("heard");
            let _ = end.recv();
        });
        let tid = told.recv().expect("a thread");
        bind(tid, cpus).expect("bound");
        Task { id: TaskId::now(tid).expect("alive"), _alive: alive }
    }

    fn cpus_of(task: &Task) -> CpuSet {
        Facts::read(task.id.tid).expect("readable").expect("there").cpus
    }

    #[test]
    fn only_the_very_task_is_put_back_and_only_if_it_is_as_it_was_left() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join("tasks.jsonl");
        let own = i32::try_from(std::process::id()).expect("a process id");
        let all = Facts::read(own).expect("readable").expect("there").cpus;
        let one: CpuSet = all.iter().take(1).collect();
        if one == all {
            return; // nothing can be told apart on one CPU
        }
        // a process of which nothing is known stands for one whose id is this one's now
        let confined = |tgid| Change::Confined { tgid, from: all.to_string(), to: one.to_string() };
        let (same, other, changed) = (task(&one), task(&one), task(&all));
        let mut journal = Journal::open(&state).expect("absent");
        let earlier = TaskId { start_ticks: other.id.start_ticks - 1, ..other.id };
        journal.note(earlier, confined(own)).expect("noted");
        journal.note(changed.id, confined(0)).expect("noted");
        drop(journal);
        assert_eq!(repair(&state).expect("repaired"), 0);
        assert_eq!((cpus_of(&other), cpus_of(&changed)), (one.clone(), all.clone()));
        assert!(!state.exists());
        // known by itself, and known as another thread of its process
        let mut journal = Journal::open(&state).expect("absent");
        journal.note(same.id, confined(own)).expect("noted");
        drop(journal);
        assert_eq!(repair(&state).expect("repaired"), 2);
        assert_eq!((cpus_of(&same), cpus_of(&other)), (all.clone(), all));
        assert_eq!(repair(&state).expect("nothing is left"), 0);
    }
}
