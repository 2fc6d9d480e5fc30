// SPDX-License-Identifier: GPL-2.0-only
//! What is known of a task when its class is decided, from /proc.

use std::cell::OnceCell;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result};
use nix::errno::Errno;
use procfs::process::{Process, Stat, StatFlags, Status};
use procfs::{FromRead, ProcError, ProcResult, ProcessCGroups};
use serde::{Deserialize, Serialize};

use crate::abi::MAX_CPUS;
use crate::config::CpuSet;
use crate::model::printable;

/// SCHED_FIFO, SCHED_RR and SCHED_DEADLINE, see sched(7).
pub const SCHED_FIFO: u32 = 1;
/// See [`SCHED_FIFO`].
pub const SCHED_RR: u32 = 2;
/// See [`SCHED_FIFO`].
pub const SCHED_DEADLINE: u32 = 6;

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Thread id.
    pub pid: i32,
    /// Process id.
    pub tgid: i32,
    /// Process id of the parent.
    pub ppid: i32,
    /// Its name, at most 15 bytes; what is not UTF-8 in it is U+FFFD. See [`Self::shown`].
    pub comm: String,
    /// The program's file; `None`: a kernel thread, or it is gone.
    pub exe: Option<PathBuf>,
    /// Path of its cgroup (version 2) below the root, "/" at least; empty where there is none.
    pub cgroup: String,
    /// Effective user id.
    pub uid: u32,
    /// SCHED_*, see sched(7).
    pub policy: u32,
    /// Priority of SCHED_FIFO or SCHED_RR, 1 to 99, else 0.
    pub rt_priority: u32,
    /// CPUs that it may run on.
    pub cpus: CpuSet,
    /// It is a kernel thread.
    pub kernel: bool,
    /// When it began, clock ticks since boot: tells apart tasks that had the same id.
    pub start_ticks: u64,
    /// Name of the parent, once somebody has asked; `None`: there is none.
    pub parent_name: OnceCell<Option<String>>,
}

impl Facts {
    /// Looks at the thread `pid`. `None`: it is gone.
    ///
    /// # Errors
    /// When /proc cannot be read for another reason.
    pub fn read(pid: i32) -> Result<Option<Self>> {
        unless_gone(Self::try_read(pid)).with_context(|| format!("task {pid}"))
    }

    fn try_read(pid: i32) -> ProcResult<Self> {
        let task = Process::new(pid)?;
        let [stat, status, cgroup] = ["stat", "status", "cgroup"].map(|file| bytes(&task, file));
        Ok(Self { exe: task.exe().ok(), ..Self::of(pid, &stat?, &status?, &cgroup?)? })
    }

    /// What the files stat, status and cgroup of a thread say. Names in them may be any bytes.
    pub(crate) fn of(pid: i32, stat: &[u8], status: &[u8], cgroup: &[u8]) -> ProcResult<Self> {
        let stat: Stat = lossy(stat)?;
        let status: Status = lossy(status)?;
        let cgroups: ProcessCGroups = lossy(cgroup)?;
        let unified = cgroups.into_iter().find(|cgroup| cgroup.hierarchy == 0);
        let cpus = status.cpus_allowed_list.unwrap_or_default();
        Ok(Self {
            pid,
            tgid: status.tgid,
            ppid: stat.ppid,
            exe: None,
            cgroup: unified.map(|cgroup| cgroup.pathname).unwrap_or_default(),
            uid: status.euid,
            policy: stat.policy.unwrap_or_default(),
            rt_priority: stat.rt_priority.unwrap_or_default(),
            cpus: cpus.into_iter().flat_map(|(from, to)| span(from, to)).collect(),
            kernel: stat.flags()?.contains(StatFlags::PF_KTHREAD),
            start_ticks: stat.starttime,
            comm: stat.comm,
            parent_name: OnceCell::new(),
        })
    }

    /// All threads of this machine that can be read, and an error if there are others.
    pub fn all() -> (Vec<Self>, Result<()>) {
        let (processes, listed) = parted([ids("/proc").context("the list of processes")]);
        let (threads, asked) = parted(processes.into_iter().flatten().map(Self::threads));
        let (all, read) = parted(threads.into_iter().flatten().map(Self::read));
        // a task that has ended meanwhile is no error
        (all.into_iter().flatten().collect(), listed.and(asked).and(read))
    }

    /// The thread ids of a process. None, if it is gone.
    ///
    /// # Errors
    /// When /proc cannot be read for another reason.
    pub fn threads(tgid: i32) -> Result<Vec<i32>> {
        let threads = unless_gone(ids(&format!("/proc/{tgid}/task")));
        Ok(threads.with_context(|| format!("the threads of process {tgid}"))?.unwrap_or_default())
    }

    /// Name of the parent process; `None`: it has none, or that is gone.
    pub fn parent_comm(&self) -> Option<&str> {
        let read = || Process::new(self.ppid).and_then(|parent| parent.stat()).ok();
        self.parent_name.get_or_init(|| Some(read()?.comm)).as_deref()
    }

    /// Its name made fit for a message: see [`printable`].
    pub fn shown(&self) -> String {
        printable(self.comm.as_bytes())
    }

    /// Is it of a kernel real-time class by its policy?
    pub fn is_realtime(&self) -> bool {
        is_realtime(self.policy)
    }
}

/// Is this policy of a kernel real-time class?
pub fn is_realtime(policy: u32) -> bool {
    matches!(policy, SCHED_FIFO | SCHED_RR | SCHED_DEADLINE)
}

/// A thread for all time: another one that has its id later began later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskId {
    /// Thread id.
    pub tid: i32,
    /// See [`Facts::start_ticks`].
    #[serde(rename = "start")]
    pub start_ticks: u64,
}

impl TaskId {
    /// The thread that `task` is about.
    pub fn of(task: &Facts) -> Self {
        Self { tid: task.pid, start_ticks: task.start_ticks }
    }

    /// The task that has the thread id `tid` now. `None`: there is none.
    ///
    /// # Errors
    /// When /proc cannot be read: the task may live.
    pub fn now(tid: i32) -> Result<Option<Self>> {
        let stat = unless_gone(Process::new(tid).and_then(|task| task.stat()))?;
        Ok(stat.map(|stat| Self { tid, start_ticks: stat.starttime }))
    }

    /// Has it not ended yet?
    ///
    /// # Errors
    /// See [`Self::now`].
    pub fn lives(self) -> Result<bool> {
        Ok(Self::now(self.tid)? == Some(self))
    }

    /// Has it ended for sure? A task that cannot be looked at now has not.
    pub fn has_ended(self) -> bool {
        matches!(self.lives(), Ok(false))
    }
}

/// What could be read, and the first error.
fn parted<T>(read: impl IntoIterator<Item = Result<T>>) -> (Vec<T>, Result<()>) {
    let (mut all, mut first) = (Vec::new(), Ok(()));
    for one in read {
        match one {
            Ok(one) => all.push(one),
            Err(error) => first = first.and(Err(error)),
        }
    }
    (all, first)
}

/// The ids that are names in this directory of /proc. (The iterators of the crate procfs open what is
/// below each, and pass over what they cannot open.)
fn ids(dir: &str) -> ProcResult<Vec<i32>> {
    let mut ids = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(ids)
}

/// `None`: the task that was read about is gone.
fn unless_gone<T>(read: ProcResult<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ProcError::NotFound(_)) => Ok(None),
        // a task that ends meanwhile: reading its files says ESRCH
        Err(ProcError::Io(error, _)) if error.raw_os_error() == Some(Errno::ESRCH as i32) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// A file of the task.
fn bytes(task: &Process, file: &str) -> ProcResult<Vec<u8>> {
    let mut bytes = Vec::new();
    task.open_relative(file)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A file that holds names which a user may choose: they need not be UTF-8.
fn lossy<T: FromRead>(bytes: &[u8]) -> ProcResult<T> {
    T::from_read(String::from_utf8_lossy(bytes).as_bytes())
}

/// CPUs from one to another, as far as scx_artis knows them.
fn span(from: u32, to: u32) -> impl Iterator<Item = usize> {
    (from as usize..=to as usize).take_while(|cpu| *cpu < MAX_CPUS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_thread() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let facts = Facts::read(tid).expect("readable").expect("there");
        assert_eq!(facts.tgid.cast_unsigned(), std::process::id());
        assert_eq!((facts.policy, facts.kernel), (0, false));
        assert!(
            facts.exe.is_some() && !facts.cpus.is_empty() && facts.start_ticks > 0,
            "{facts:?}"
        );
        assert!(facts.parent_comm().is_some_and(|comm| !comm.is_empty()));
        assert!(Facts::threads(facts.tgid).expect("readable").contains(&tid));
        let (all, read) = Facts::all();
        read.expect("readable");
        assert!(all.iter().any(|task| task.pid == tid));
        let id = TaskId::of(&facts);
        assert_eq!(TaskId::now(tid).expect("readable"), Some(id));
        let earlier = TaskId { start_ticks: id.start_ticks - 1, ..id };
        assert!(id.lives().expect("readable") && !id.has_ended());
        assert!(!earlier.lives().expect("readable") && earlier.has_ended());
    }

    #[test]
    fn a_name_that_is_not_utf8() {
        let read = || {
            rustix::thread::set_name(c"a\xff\n\x1b[2J").expect("renamed");
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            let listed = Facts::all().0.into_iter().find(|task| task.pid == tid);
            (Facts::read(tid).expect("readable"), listed)
        };
        let (read, listed) = std::thread::spawn(read).join().expect("no panic");
        assert_eq!(read, listed);
        let task = read.expect("there");
        assert_eq!(task.comm, "a\u{fffd}\n\x1b[2J");
        assert_eq!(task.shown(), "a?????[2J");
    }

    #[test]
    fn only_a_task_that_is_not_found_is_gone() {
        let failed = |errno: Errno| -> ProcResult<()> {
            Err(std::io::Error::from_raw_os_error(errno as i32).into())
        };
        assert_eq!(unless_gone(failed(Errno::ENOENT)).expect("gone"), None);
        assert_eq!(unless_gone(failed(Errno::ESRCH)).expect("gone"), None);
        for errno in [Errno::EMFILE, Errno::ENOMEM, Errno::EACCES] {
            unless_gone(failed(errno)).expect_err("it may live");
        }
    }

    #[test]
    fn what_can_be_read_is_there_beside_an_error() {
        let failed = |why: &'static str| Err(anyhow::anyhow!(why));
        let (all, read) = parted([Ok(1), failed("first"), Ok(2), failed("second")]);
        assert_eq!((all, read.expect_err("two").to_string()), (vec![1, 2], "first".to_owned()));
        let (all, read) = parted([Ok(1), Ok(2)]);
        assert_eq!(all, [1, 2]);
        read.expect("no error");
    }

    #[test]
    fn nobody() {
        assert_eq!(Facts::read(i32::MAX).expect("readable"), None);
        assert!(Facts::threads(i32::MAX).expect("readable").is_empty());
        assert_eq!(TaskId::now(i32::MAX).expect("readable"), None);
    }
}
