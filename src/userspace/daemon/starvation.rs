// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks that hold all NRT CPUs keep the daemon from running: it is a normal task, and
//! stays off the RT CPUs. A thread of SCHED_FIFO 99 wakes up when the run loop stands still, looks for
//! threads of the daemon that wait, and makes them SCHED_RR 99 until they sleep or have run for a while
//! (docs/decisions/0021-hogs.md).

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::libc;
use procfs::process::{Process, Task};

use super::classes::facts::SCHED_RR;
use super::{place, sched};

/// The run loop stands still when it has not turned for so long: it does every 100 ms at least, and once
/// in each period of the RT1+ budget, 2^30 ns, where RT1+ tasks hold all CPUs.
const STILL_MS: u64 = 1200;
/// Between two looks at the threads meanwhile. One that is found waiting twice, without having run,
/// starves.
const LOOK: Duration = Duration::from_millis(100);
/// A thread that has run for so long since it was raised, without sleeping, is a normal one again, ns. In
/// the kernel it may spin until another task goes on, which waits for the same CPU.
const RAISED_MAX_NS: u64 = 300_000_000;
/// Threads that must answer, adopt, and end: the names of the others. The first one of the process has
/// the program's.
const NEEDED: [&str; 3] = ["signals", "control", "news"];

/// The thread that looks; it ends when this is dropped.
#[derive(Debug)]
pub struct Relief {
    run_loop: Arc<RunLoop>,
    thread: Option<JoinHandle<()>>,
}

/// What is known of the run loop.
#[derive(Debug)]
struct RunLoop {
    begun: Instant,
    /// The time of the last turn, since `begun`, ms.
    turned_ms: AtomicU64,
    has_ended: AtomicBool,
}

impl Relief {
    /// Begins, on the CPUs of the calling thread. Until the first [`Relief::turn`] the loop stands
    /// still.
    ///
    /// # Errors
    /// When there is no thread.
    pub fn begin() -> Result<Self> {
        let run_loop = Arc::new(RunLoop {
            begun: Instant::now(),
            turned_ms: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        });
        let mut watch = Watch { run_loop: Arc::clone(&run_loop), seen: BTreeMap::new() };
        let thread = thread::Builder::new().name("relief".into()).spawn(move || watch.run());
        let thread = thread.context("a thread that looks for starving ones")?;
        Ok(Self { run_loop, thread: Some(thread) })
    }

    /// The run loop turns: it is its thread that calls this. Where that gets a CPU the others do, too,
    /// since they may run on the same ones.
    pub fn turn(&self) {
        self.run_loop.turned_ms.store(self.run_loop.now_ms(), Ordering::Relaxed);
    }
}

impl Drop for Relief {
    fn drop(&mut self) {
        self.run_loop.has_ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl RunLoop {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When it stands still, if it does not turn before, in ms; 0: it does.
    fn still_in_ms(&self) -> u64 {
        (self.turned_ms.load(Ordering::Relaxed) + STILL_MS).saturating_sub(self.now_ms())
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }
}

/// What was seen of a thread the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// It runs, or waits to.
    runnable: bool,
    /// How long it has run, ns.
    ran_ns: u64,
    /// The same when it was raised; `None`: it is not.
    raised_ns: Option<u64>,
}

impl Seen {
    /// Has it waited since `before` without having run?
    fn starves(&self, before: Option<Self>) -> bool {
        self.runnable && before == Some(*self) && self.raised_ns.is_none()
    }

    /// Does it sleep, or has it run for long enough?
    fn is_relieved(&self) -> bool {
        let had = |raised_ns: u64| self.ran_ns.saturating_sub(raised_ns);
        self.raised_ns.is_some_and(|at| !self.runnable || had(at) >= RAISED_MAX_NS)
    }
}

struct Watch {
    run_loop: Arc<RunLoop>,
    seen: BTreeMap<i32, Seen>,
}

impl Watch {
    fn run(&mut self) {
        if let Err(error) = sched::set(0, &sched::highest()) {
            log::warn!(
                "the daemon cannot be SCHED_FIFO ({error}): real-time tasks on all NRT CPUs may keep \
                 it from answering"
            );
            return;
        }
        while !self.run_loop.has_ended() {
            match self.run_loop.still_in_ms() {
                0 => self.look_until_it_turns(),
                // by a futex: the timer of a real-time task, which expires in the interrupt on
                // PREEMPT_RT, too, while that of a timerfd needs the thread ktimers/N of priority 1
                ms => thread::park_timeout(Duration::from_millis(ms)),
            }
        }
    }

    fn look_until_it_turns(&mut self) {
        while !self.run_loop.has_ended() && (self.run_loop.still_in_ms() == 0 || self.has_raised())
        {
            self.look();
            thread::sleep(LOOK);
        }
        // no other thread would lower them any more
        self.seen
            .iter()
            .filter(|(_, seen)| seen.raised_ns.is_some())
            .for_each(|(tid, _)| drop(lower(*tid)));
        self.seen.clear();
    }

    fn has_raised(&self) -> bool {
        self.seen.values().any(|seen| seen.raised_ns.is_some())
    }

    fn look(&mut self) {
        let tasks = Process::myself().and_then(|daemon| daemon.tasks());
        let mut seen = BTreeMap::new();
        for task in tasks.into_iter().flatten().flatten() {
            let before = self.seen.get(&task.tid).copied();
            // what cannot be read has ended
            if let Some(now) = see(&task, before) {
                seen.insert(task.tid, relieve(task.tid, before, now));
            }
        }
        self.seen = seen;
    }
}

/// Changes what the thread is, if it has to be. Returns what is to be remembered of it.
fn relieve(tid: i32, before: Option<Seen>, now: Seen) -> Seen {
    let changed = match (now.starves(before), now.is_relieved()) {
        (true, _) => raise(tid).map(|()| Some(now.ran_ns)),
        (_, true) => lower(tid).map(|()| None),
        _ => return now,
    };
    match changed {
        Ok(raised_ns) => {
            log::debug!("thread {tid} of the daemon is SCHED_RR: {}", raised_ns.is_some());
            Seen { raised_ns, ..now }
        }
        Err(error) => {
            log::debug!("thread {tid} of the daemon stays what it is: {error}");
            now
        }
    }
}

/// Round robin: the thread that looks has the same priority, and would wait for one that does not sleep.
fn raise(tid: i32) -> io::Result<()> {
    sched::set(tid, &libc::sched_attr { sched_policy: SCHED_RR, ..sched::highest() })
}

/// The thread is what [`place::be_prompt`] makes of all.
fn lower(tid: i32) -> io::Result<()> {
    sched::set(tid, &libc::sched_attr { sched_nice: place::NICE, ..sched::attr(0) })
}

/// What is seen of a thread that is needed.
fn see(task: &Task, before: Option<Seen>) -> Option<Seen> {
    let stat = task.stat().ok()?;
    if task.tid != task.pid && !NEEDED.contains(&stat.comm.as_str()) {
        return None;
    }
    Some(Seen {
        runnable: stat.state == 'R',
        ran_ns: task.schedstat().ok()?.sum_exec_runtime,
        raised_ns: before.and_then(|before| before.raised_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_raised_while_it_starves_and_for_a_while() {
        let waits = |ran_ns, raised_ns| Seen { runnable: true, ran_ns, raised_ns };
        assert!(waits(5, None).starves(Some(waits(5, None))));
        assert!(!waits(6, None).starves(Some(waits(5, None))), "it has run");
        assert!(!waits(5, None).starves(None), "it is seen for the first time");
        assert!(!waits(5, Some(5)).starves(Some(waits(5, Some(5)))), "it is raised");
        assert!(!waits(5, None).is_relieved() && !waits(5, Some(5)).is_relieved());
        assert!(Seen { runnable: false, ..waits(5, Some(5)) }.is_relieved());
        assert!(!waits(5 + RAISED_MAX_NS - 1, Some(5)).is_relieved());
        assert!(waits(5 + RAISED_MAX_NS, Some(5)).is_relieved(), "it spins");
    }
}
