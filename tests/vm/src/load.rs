// SPDX-License-Identifier: GPL-2.0-only
//! Background loads: programs in process groups of their own, and workers.
//! Whatever happens, all of them are gone when their guard is dropped.

use std::env;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::cgroup::Cgroup;
use crate::guest::{PATIENCE, describe, pause, scx_dump, until};
use crate::progress::Board;
use crate::worker::Spec;

/// A program with its descendants, in a cgroup: stress-ng's forked processes leave its process
/// group and its session.
pub struct Load {
    child: Child,
    name: String,
    cgroup: Cgroup,
}

impl Load {
    /// A shell command in a process group of its own, output thrown away.
    pub fn shell(command: &str) -> Result<Self> {
        static LOADS: AtomicU32 = AtomicU32::new(0);
        let nth = LOADS.fetch_add(1, Ordering::Relaxed);
        let cgroup = Cgroup::plain(&format!("load-{}-{nth}", std::process::id()))?;
        let child = cgroup
            .shell(command)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {command}"))?;
        Ok(Self { child, name: command.to_string(), cgroup })
    }

    /// stress-ng with these stressors, without a time limit.
    pub fn stress(stressors: &str) -> Result<Self> {
        Self::shell(&format!("cd /tmp && exec stress-ng --quiet --timeout 0 {stressors}"))
    }

    /// hackbench, over and over.
    pub fn hackbench() -> Result<Self> {
        Self::shell("while :; do hackbench -l 200 -g 1 -f 4; done")
    }

    /// Fails if it ended by itself.
    pub fn ensure_runs(&mut self) -> Result<()> {
        let status = self.child.try_wait()?;
        ensure!(status.is_none(), "the load '{}' ended: {status:?}", self.name);
        Ok(())
    }

    /// Stops all of it and waits until it stands, or continues all of it.
    pub fn freeze(&self, on: bool) -> Result<()> {
        self.cgroup.freeze(on).with_context(|| self.name.clone())
    }
}

fn stop_or_go(stop: bool) -> Signal {
    if stop { Signal::SIGSTOP } else { Signal::SIGCONT }
}

impl Drop for Load {
    fn drop(&mut self) {
        // stress-ng removes its files on SIGTERM; what remains is killed
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        pause(0.1);
        if let Err(e) = self.cgroup.kill() {
            println!("the load '{}' is not killed: {e:#}", self.name);
        }
        let _ = self.child.wait();
    }
}

/// stress-ng (computing, page faults, system calls, forks) and hackbench: what
/// most scenarios have in the background. The first one only computes.
pub fn mix() -> Result<Vec<Load>> {
    Ok(vec![
        Load::stress("--cpu 2")?,
        Load::stress("--vm 1 --vm-bytes 16M --sysinfo 1 --fork 1")?,
        Load::hackbench()?,
    ])
}

/// Workers and the board where they count.
pub struct Workers {
    board: Board,
    all: Vec<(Spec, Child)>,
}

impl Workers {
    /// None yet.
    pub fn new(name: &str) -> Result<Self> {
        Ok(Self { board: Board::create(name)?, all: Vec::new() })
    }

    /// Starts the workers, in order.
    pub fn start(name: &str, specs: impl IntoIterator<Item = Spec>) -> Result<Self> {
        let mut w = Self::new(name)?;
        for s in specs {
            w.add(s)?;
        }
        Ok(w)
    }

    /// Starts one more; returns its index.
    pub fn add(&mut self, spec: Spec) -> Result<usize> {
        let slot = self.all.len();
        let child = self.spawn(&spec, slot)?;
        self.all.push((spec, child));
        Ok(slot)
    }

    /// Kills one and starts another one like it in its place.
    pub fn replace(&mut self, i: usize) -> Result<()> {
        let spec = self.spec(i).clone();
        let new = self.spawn(&spec, i)?;
        let mut old = std::mem::replace(&mut self.all[i].1, new);
        let killed = old.kill();
        old.wait()?;
        Ok(killed?)
    }

    fn spawn(&self, spec: &Spec, slot: usize) -> Result<Child> {
        Board::check(slot)?;
        Command::new(env::current_exe()?)
            .arg("worker")
            .arg(format!("--board={}", self.board.path().display()))
            .arg(format!("--slot={slot}"))
            .args(spec.args())
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("start worker {}", spec.name()))
    }

    /// The board.
    #[must_use]
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Is there none?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The process of a worker.
    #[must_use]
    pub fn pid(&self, i: usize) -> u32 {
        self.all[i].1.id()
    }

    /// What the worker was told.
    #[must_use]
    pub fn spec(&self, i: usize) -> &Spec {
        &self.all[i].0
    }

    /// Stops or continues all of them.
    pub fn freeze(&self, on: bool) -> Result<()> {
        (0..self.len()).try_for_each(|i| self.freeze_one(i, on))
    }

    /// Stops or continues one of them.
    pub fn freeze_one(&self, i: usize, on: bool) -> Result<()> {
        Ok(kill(Pid::from_raw(self.pid(i).cast_signed()), stop_or_go(on))?)
    }

    /// Kills the last one; returns how long it took to be gone.
    pub fn kill_last(&mut self) -> Result<Duration> {
        let (_, mut child) = self.all.pop().context("no workers")?;
        let start = Instant::now();
        child.kill()?;
        child.wait()?;
        Ok(start.elapsed())
    }

    /// Work done so far, by index.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        (0..self.len()).map(|i| self.board.done(i).load(Ordering::Relaxed)).collect()
    }

    /// Work done in the next `secs`, by index.
    #[must_use]
    pub fn rates(&self, secs: f64) -> Vec<u64> {
        let before = self.counts();
        pause(secs);
        self.done_since(&before)
    }

    /// Work done since the counts were these, by index.
    fn done_since(&self, before: &[u64]) -> Vec<u64> {
        self.counts().iter().zip(before).map(|(now, before)| now - before).collect()
    }

    /// Fails if a worker ended by itself, and waits until each began.
    pub fn wait_begun(&mut self) -> Result<()> {
        let board = &self.board;
        for (i, (spec, child)) in self.all.iter_mut().enumerate() {
            until(&format!("worker {i} ({}) begins", spec.name()), PATIENCE, || {
                let status = child.try_wait()?;
                ensure!(status.is_none(), "worker {i} ({}) ended: {status:?}", spec.name());
                Ok(board.done(i).load(Ordering::Relaxed) > 0)
            })?;
        }
        Ok(())
    }

    /// Fails if one has ended.
    pub fn ensure_alive(&mut self, when: &str) -> Result<()> {
        for (spec, child) in &mut self.all {
            let status = child.try_wait()?;
            ensure!(status.is_none(), "worker ({}) ended {when}: {status:?}", spec.name());
        }
        Ok(())
    }

    /// Fails unless each did some work in the next `secs`.
    pub fn ensure_progress(&mut self, secs: f64, when: &str) -> Result<()> {
        Self::ensure_all_progress(&mut [self], secs, when)
    }

    /// The same of several at once.
    pub fn ensure_all_progress(of: &mut [&mut Self], secs: f64, when: &str) -> Result<()> {
        let before: Vec<_> = of.iter().map(|workers| workers.counts()).collect();
        pause(secs);
        of.iter_mut().zip(before).try_for_each(|(workers, before)| {
            let done = workers.done_since(&before);
            workers.ensure_worked(&done, &format!("in {secs} s {when}"))
        })
    }

    /// Waits until each has done some work from now on: for as long as the kernel lets a task wait that
    /// could run.
    pub fn wait_progress(&mut self, when: &str) -> Result<()> {
        let before = self.counts();
        let mut done = Vec::new();
        // which of them have not is told below
        let _ = until("each gets on", PATIENCE / 2, || {
            done = self.done_since(&before);
            Ok(done.iter().all(|done| *done > 0))
        });
        self.ensure_worked(&done, when)
    }

    fn ensure_worked(&mut self, done: &[u64], when: &str) -> Result<()> {
        self.ensure_alive(when)?;
        let stuck: Vec<String> = (0..self.len())
            .filter(|i| done[*i] == 0)
            .map(|i| format!("{i} ({}: {})", self.spec(i).name(), describe(self.pid(i))))
            .collect();
        if !stuck.is_empty() {
            eprintln!("{}", scx_dump());
        }
        ensure!(stuck.is_empty(), "no progress {when}: workers {}", stuck.join(", "));
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for (_, child) in &mut self.all {
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        }
        for (_, child) in &mut self.all {
            let _ = child.wait();
        }
    }
}
