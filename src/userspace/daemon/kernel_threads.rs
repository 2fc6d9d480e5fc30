// SPDX-License-Identifier: GPL-2.0-only
//! A real-time task that does not sleep keeps the kernel's own threads of its CPU from running: work
//! that others wait for stays undone, and after 30 s the kernel ejects the scheduler. From 7.0 on the
//! kernel's `ext_server` gives such threads a part of the CPU. Where nothing does, a thread that has
//! starved is SCHED_FIFO 99 while its CPU is held (docs/decisions/0023-kernel-threads.md).

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::libc::{ESRCH, sched_attr};
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use procfs::process::{Process, Stat, StatFlags};
use serde::{Deserialize, Serialize};

use super::classes::facts::TaskId;
use super::scheduler::Scheduler;
use super::{run_dir, sched};

/// Between two looks. A thread that waits in two of them, without having run, starves.
const LOOK: Duration = Duration::from_secs(1);
/// Between two looks at threads of SCHED_FIFO 99.
const TURN: Duration = Duration::from_millis(100);
/// What such a thread may run between these, ns. One that runs for longer waits for the next look at
/// all: it has some 10 % of the CPU. The kernel's server takes 5.
const BUDGET_NS: u64 = 50_000_000;
/// SCHED_OTHER.
const SCHED_OTHER: u32 = 0;
/// Priorities of SCHED_FIFO.
const HIGHEST: u32 = 99;
/// See [`HIGHEST`].
const LOWEST: u32 = 1;

/// Lets kernel threads run that starve beneath real-time tasks.
#[derive(Debug)]
pub struct KernelThreads {
    /// Says what is changed, for as long as something is.
    record: PathBuf,
    looked: Instant,
    turned: Instant,
    /// CPUs that real-time tasks hold, and since when.
    held: BTreeMap<usize, u64>,
    /// Kernel threads that waited for such a CPU, and for how long they had run, ns.
    waited: BTreeMap<TaskId, u64>,
    changed: Vec<Changed>,
}

/// A thread of SCHED_OTHER that has starved, and is SCHED_FIFO now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Changed {
    #[serde(flatten)]
    id: TaskId,
    nice: i32,
    /// 0: not changed yet.
    #[serde(skip)]
    priority: u32,
    /// For how long it had run at the last look, ns.
    #[serde(skip)]
    ran_ns: u64,
}

impl KernelThreads {
    /// That remembers in the file `record` what it changes.
    pub fn new(record: PathBuf) -> Self {
        let now = Instant::now();
        Self {
            record,
            looked: now,
            turned: now,
            held: BTreeMap::new(),
            waited: BTreeMap::new(),
            changed: Vec::new(),
        }
    }

    /// Called by the run loop at each turn: looks, if it is time to.
    pub fn turn(&mut self, scheduler: &Scheduler<'_>) {
        if self.turned.elapsed() >= TURN {
            self.turned = Instant::now();
            for thread in &mut self.changed {
                if thread.priority == HIGHEST && !thread.is_modest() {
                    thread.set(LOWEST);
                }
            }
        }
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.changed.retain(|thread| !thread.id.has_ended());
            let held = self.held(scheduler);
            let starving = self.starving(&held, scheduler);
            if let Err(error) = self.add(&starving) {
                log::warn!("kernel threads starve beneath a real-time task: {error:#}");
            }
            for thread in &mut self.changed {
                let highest = is_bound(thread.id.tid, &held);
                thread.set(if highest { HIGHEST } else { LOWEST });
            }
        }
    }

    /// The scheduler has ended: all threads are what they were.
    pub fn end(&mut self) {
        match lower(&self.record, &self.changed) {
            Ok(()) => self.changed.clear(),
            Err(error) => log::warn!("{error:#}; scx_artis restore tries again"),
        }
    }

    /// The CPUs that real-time tasks have held since the last look.
    fn held(&mut self, scheduler: &Scheduler<'_>) -> Vec<usize> {
        let before = std::mem::replace(&mut self.held, scheduler.held());
        let still = self.held.iter().filter(|(cpu, since)| before.get(cpu) == Some(since));
        still.map(|(cpu, _)| *cpu).collect()
    }

    /// The threads that have starved since the last look, for these CPUs.
    fn starving(&mut self, held: &[usize], scheduler: &Scheduler<'_>) -> Vec<TaskId> {
        let may_wait = held.iter().any(|cpu| scheduler.has_bound(*cpu));
        let waiting = if may_wait { waiting(held) } else { BTreeMap::new() };
        let before = std::mem::replace(&mut self.waited, waiting);
        let starve = self.waited.iter().filter(|(id, ran)| before.get(id) == Some(ran));
        starve.map(|(id, _)| *id).collect()
    }

    fn add(&mut self, starving: &[TaskId]) -> Result<()> {
        let found: Vec<_> = starving.iter().filter_map(Changed::new).collect();
        if found.is_empty() {
            return Ok(());
        }
        let mut changed = self.changed.clone();
        changed.extend(found);
        run_dir::save(&self.record, &changed)
            .context("what they were cannot be remembered, so they stay what they are")?;
        self.changed = changed;
        Ok(())
    }
}

impl Drop for KernelThreads {
    fn drop(&mut self) {
        self.end();
    }
}

impl Changed {
    /// `None`: it is no normal task.
    fn new(id: &TaskId) -> Option<Self> {
        let attr = sched::get(id.tid).ok()??;
        let normal = attr.sched_policy == SCHED_OTHER;
        normal.then_some(Self { id: *id, nice: attr.sched_nice, priority: 0, ran_ns: 0 })
    }

    /// Has it run for a moment only since the last look?
    fn is_modest(&mut self) -> bool {
        let ran_ns = ran_ns(self.id.tid).unwrap_or_default();
        let before = std::mem::replace(&mut self.ran_ns, ran_ns);
        ran_ns.saturating_sub(before) <= BUDGET_NS
    }

    /// Gives it this priority of SCHED_FIFO. A thread that has waited as an ext task and run as another
    /// one counts for the kernel's watchdog as if it waited still, as soon as it is an ext task that
    /// waits (kernel/sched/ext.c sets `runnable_at` anew only after a run as an ext task). So it is
    /// none until the scheduler has ended.
    fn set(&mut self, priority: u32) {
        let tid = self.id.tid;
        if priority == self.priority || self.id.has_ended() {
            return;
        }
        (self.priority, self.ran_ns) = (priority, ran_ns(tid).unwrap_or_default());
        let raised = sched_attr { sched_priority: priority, ..sched::highest() };
        match give(&self.id, &raised, sched::set) {
            Ok(()) => log::debug!("kernel thread {tid} is SCHED_FIFO {priority}"),
            Err(error) => {
                log::debug!("kernel thread {tid} is not SCHED_FIFO {priority}: {error}");
            }
        }
    }

    /// It is a normal task again, unless it has ended.
    fn lower(&self) -> Result<()> {
        let normal = sched_attr { sched_nice: self.nice, ..sched::attr(SCHED_OTHER) };
        let tid = self.id.tid;
        if self.id.has_ended() {
            return Ok(());
        }
        match sched::set(tid, &normal) {
            Err(error) if !sched::is_gone(&error) => Err(error).with_context(|| {
                format!("kernel thread {tid} stays SCHED_FIFO: chrt -o -p 0 {tid}")
            }),
            _ => Ok(()),
        }
    }
}

/// Gives the task `id` these attributes by `set`. Another one that has got its number in between was not
/// meant: it is a normal task then.
fn give(
    id: &TaskId,
    attr: &sched_attr,
    set: impl Fn(i32, &sched_attr) -> io::Result<()>,
) -> io::Result<()> {
    set(id.tid, attr)?;
    if !id.has_ended() {
        return Ok(());
    }
    set(id.tid, &sched::attr(SCHED_OTHER))?;
    Err(io::Error::from_raw_os_error(ESRCH))
}

/// Lowers what a dead predecessor has changed. The caller holds the lock that shows it dead. Returns how
/// many threads the file `record` names.
///
/// # Errors
/// When the file cannot be understood, or a thread not be lowered.
pub fn repair(record: &Path) -> Result<usize> {
    let Some(text) = run_dir::saved(record)? else { return Ok(0) };
    let changed = changed(&text).with_context(|| {
        format!(
            "{} is damaged: remove it. Kernel threads that it was about may be SCHED_FIFO, see ps -eLo \
             pid,cls,rtprio,comm",
            record.display()
        )
    })?;
    lower(record, &changed)?;
    Ok(changed.len())
}

/// The threads in a text that [`KernelThreads`] has saved.
pub(crate) fn changed(text: &str) -> serde_json::Result<Vec<Changed>> {
    serde_json::from_str(text)
}

/// Each is tried.
fn lower(record: &Path, changed: &[Changed]) -> Result<()> {
    let lowered = changed.iter().map(Changed::lower).fold(Ok(()), Result::and);
    if record.exists() { lowered.and_then(|()| run_dir::forget(record)) } else { lowered }
}

/// The kernel threads that wait and may run on the CPUs `cpus` only, with the time that each has run, ns.
fn waiting(cpus: &[usize]) -> BTreeMap<TaskId, u64> {
    let waits = |process: Process| {
        // what has ended meanwhile does not wait
        let stat = process.stat().ok().filter(is_kernels_and_waits)?;
        is_bound(stat.pid, cpus).then_some(())?;
        Some((TaskId { tid: stat.pid, start_ticks: stat.starttime }, ran_ns(stat.pid)?))
    };
    // each is a process of its own
    procfs::process::all_processes().into_iter().flatten().flatten().filter_map(waits).collect()
}

/// How long it has run, ns; `None`: it has ended.
fn ran_ns(tid: i32) -> Option<u64> {
    Some(Process::new(tid).ok()?.schedstat().ok()?.sum_exec_runtime)
}

fn is_kernels_and_waits(stat: &Stat) -> bool {
    stat.state == 'R' && stat.flags().is_ok_and(|flags| flags.contains(StatFlags::PF_KTHREAD))
}

fn is_bound(tid: i32, cpus: &[usize]) -> bool {
    let Ok(may) = sched_getaffinity(Pid::from_raw(tid)) else { return false };
    let mut all = 0..nix::sched::CpuSet::count();
    all.all(|cpu| cpus.contains(&cpu) || !may.is_set(cpu).unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::process::Command;

    use nix::libc;

    use super::*;
    use crate::daemon::classes::facts::SCHED_FIFO;

    #[test]
    fn what_is_changed_is_remembered_until_it_is_lowered() {
        let dir = tempfile::tempdir().expect("a directory");
        let record = dir.path().join("kernel_threads.json");
        assert_eq!(repair(&record).expect("nothing"), 0);
        // this thread is what lowering makes of it already
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let id = TaskId::now(tid).expect("readable").expect("there");
        let own = Changed { id, nice: 0, priority: LOWEST, ran_ns: 0 };
        let dead =
            Changed { id: TaskId { start_ticks: id.start_ticks - 1, ..id }, nice: -20, ..own };
        run_dir::save(&record, &vec![own, dead]).expect("saved");
        assert_eq!(repair(&record).expect("lowered"), 2);
        assert!(!record.exists());
        fs::write(&record, "[{").expect("written");
        let error = repair(&record).expect_err("damaged").to_string();
        assert!(error.contains("damaged") && record.exists(), "{error}");
    }

    #[test]
    fn a_task_that_has_got_the_number_of_another_one_is_not_raised() {
        let child = Command::new("sleep").arg("60").spawn().expect("a child");
        let tid = child.id().cast_signed();
        let id = TaskId::now(tid).expect("readable").expect("there");
        let (child, calls) = (RefCell::new(child), RefCell::new(Vec::new()));
        let set = |of, attr: &sched_attr| {
            calls.borrow_mut().push((of, attr.sched_policy, attr.sched_flags));
            // it ends between the last look at it and the call
            let mut child = child.borrow_mut();
            child.kill().and_then(|()| child.wait()).map(drop)
        };
        let error = give(&id, &sched::highest(), set).expect_err("it has ended");
        assert!(sched::is_gone(&error), "{error}");
        let reset_on_fork = libc::SCHED_FLAG_RESET_ON_FORK as u64;
        assert_eq!(
            calls.into_inner(),
            [(tid, SCHED_FIFO, reset_on_fork), (tid, SCHED_OTHER, 0)],
            "children of it are normal tasks in any case"
        );
    }

    #[test]
    fn a_thread_is_bound_where_it_may_run_nowhere_else() {
        let may = sched_getaffinity(Pid::from_raw(0)).expect("readable");
        let mine = (0..nix::sched::CpuSet::count()).filter(|cpu| may.is_set(*cpu) == Ok(true));
        let mut mine: Vec<_> = mine.collect();
        assert!(is_bound(0, &mine));
        mine.pop();
        assert!(!is_bound(0, &mine) && !is_bound(i32::MAX, &mine));
        // this thread runs, and is none of the kernel's
        let stat = Process::myself().and_then(|process| process.stat()).expect("readable");
        assert!(!is_kernels_and_waits(&stat));
    }
}
