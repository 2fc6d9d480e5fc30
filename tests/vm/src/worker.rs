// SPDX-License-Identifier: GPL-2.0-only
//! One task of a known kind: what it does, its priority, its CPUs. A worker is
//! a process of its own (`artis-guest worker …`), so that the scheduler sees
//! what it would see of any program, and counts its work on a [`Board`].

use std::ffi::CString;
use std::fs;
use std::hint::black_box;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};

use crate::besiege;
use crate::cpus::Cpus;
use crate::forge;
use crate::guest::{PATIENCE, until};
use crate::hold::Hold;
use crate::policy::{EXT, Policy};
use crate::progress::Board;
use crate::work::{
    Duty, Epoll, Page, alarm, call, compute, compute_units, exec_once, fork_once, monotonic_ns,
    pass_tick, read_tasks, sleep_until, thread_once, touch, units_in,
};

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// computes, without a system call
    Spin,
    /// the same, with 32 MiB of memory, which its end gives back
    Large,
    /// sleeps 2 ms, again and again
    Sleep,
    /// runs while each tick is due, and sleeps between
    Tick,
    /// enters the kernel all the time
    Call,
    /// waits for 1 ms for up to 16 events of epoll_wait(2), then for up to 17
    Epoll,
    /// is in RCU read-side sections of the kernel nearly all the time
    Reader,
    /// computes for 6 ms, then enters the kernel and faults a few times
    Mixed,
    /// computes for 6 ms, then sleeps for 20 ms in an epoll_wait(2) for up to 17 events
    Await,
    /// computes for 6 ms, then has a harmless call write to a page that it has not touched
    Fresh,
    /// forks, the child exits, waits for it
    Fork,
    /// the same, but the child computes for 20 ms before it exits
    Job,
    /// forks and executes a program
    Exec,
    /// starts and joins a thread
    Thread,
    /// maps memory, touches each page, unmaps it
    Touch,
    /// as touch, all of it locked in memory
    Lock,
    /// uses --duty percent of each 20 ms
    Duty,
    /// computes for 1 ms, then sleeps until 5 ms after it began: a periodic task that makes no
    /// endangering call
    Periodic,
    /// computes for 1 ms, then enters the kernel
    Enter,
    /// computes, and has a handler for the signal of a timer, which comes every 7 ms
    Alarm,
    /// computes, and enters the kernel once when the start signal is given
    Burst,
    /// holds its CPU in the kernel for 400 ms when the start signal is given: no other task runs
    /// there meanwhile. Counts once when it is ready and once more just before it holds
    Hold,
    /// an ordinary user's tasks that claim to have been real time, see [`forge::run`]; ends if one
    /// is
    Forge,
    /// an ordinary user's storm of names, programs and connections, see [`besiege::run`]
    Siege,
    /// has a second thread that becomes SCHED_FIFO, with the priority of --fifo, and executes a
    /// program that sleeps once it is adopted; counts once, before
    Become,
}

impl Kind {
    /// How long it computes between two entries, ns of an undisturbed CPU; 0: it is not told.
    fn compute_ns(self) -> u64 {
        match self {
            Self::Mixed | Self::Await | Self::Fresh => 6_000_000,
            Self::Enter | Self::Periodic => 1_000_000,
            Self::Job => 20_000_000,
            _ => 0,
        }
    }
}

/// All that a worker is told.
#[derive(Args, Clone, Debug)]
pub struct Spec {
    /// What it does
    #[arg(long)]
    pub kind: Kind,
    /// CPUs it binds itself to
    #[arg(long)]
    pub cpus: Option<Cpus>,
    /// Its nice value
    #[arg(long, default_value_t = 0, allow_hyphen_values = true)]
    pub nice: i32,
    /// SCHED_FIFO with this priority
    #[arg(long)]
    pub fifo: Option<i32>,
    /// SCHED_DEADLINE, for the kind duty: twice what it uses of each of its periods
    #[arg(long)]
    pub deadline: bool,
    /// Share of a CPU in percent, for the kind duty
    #[arg(long, default_value_t = 25)]
    pub duty: u32,
    /// Keeps the longest time between two counts by its own clock
    #[arg(long)]
    pub clocked: bool,
    /// cgroup.procs of the group it joins
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
}

impl Spec {
    /// A worker of this kind with nothing special.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            cpus: None,
            nice: 0,
            fifo: None,
            deadline: false,
            duty: 25,
            clocked: false,
            cgroup: None,
        }
    }

    /// Bound to `cpus`.
    #[must_use]
    pub fn on(mut self, cpus: Cpus) -> Self {
        self.cpus = Some(cpus);
        self
    }

    /// With this nice value.
    #[must_use]
    pub fn nice(mut self, nice: i32) -> Self {
        self.nice = nice;
        self
    }

    /// In SCHED_FIFO with this priority.
    #[must_use]
    pub fn fifo(mut self, priority: i32) -> Self {
        self.fifo = Some(priority);
        self
    }

    /// With its longest pause on the board.
    #[must_use]
    pub fn clocked(mut self) -> Self {
        self.clocked = true;
        self
    }

    /// A name for messages.
    #[must_use]
    pub fn name(&self) -> String {
        let mut s = format!("{:?}", self.kind).to_lowercase();
        if self.nice != 0 {
            s += &format!(" nice {}", self.nice);
        }
        if let Some(c) = self.cpus {
            s += &format!(" on {c}");
        }
        if let Some(f) = self.fifo {
            s += &format!(" fifo {f}");
        }
        s
    }

    /// The command line that [`run`] parses.
    #[must_use]
    pub fn args(&self) -> Vec<String> {
        let kind = format!("{:?}", self.kind).to_lowercase();
        let mut a = vec!["--kind".into(), kind, format!("--nice={}", self.nice)];
        a.push(format!("--duty={}", self.duty));
        a.extend(self.cpus.map(|c| format!("--cpus={c}")));
        a.extend(self.fifo.map(|f| format!("--fifo={f}")));
        a.extend(self.deadline.then(|| "--deadline".into()));
        a.extend(self.clocked.then(|| "--clocked".into()));
        a.extend(self.cgroup.iter().map(|g| format!("--cgroup={}", g.display())));
        a
    }
}

/// Becomes the worker of `slot`. One that computes between entries counts units of computing,
/// others count what they repeat.
pub fn run(spec: &Spec, board: &Board, slot: usize) -> Result<()> {
    Board::check(slot)?;
    become_it(spec, slot)?;
    let done = board.done(slot);
    if spec.kind == Kind::Hold {
        let hold = Hold::load(HOLD)?;
        done.fetch_add(1, Ordering::Relaxed);
        while !board.started() {
            std::thread::sleep(Duration::from_millis(1));
        }
        done.fetch_add(1, Ordering::Relaxed);
        return hold.hold();
    }
    if spec.kind == Kind::Forge {
        return forge::run(|| {
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    if spec.kind == Kind::Siege {
        return besiege::run(done);
    }
    if spec.kind == Kind::Become {
        done.fetch_add(1, Ordering::Relaxed);
        let priority = spec.fifo.context("--fifo is missing")?;
        let ended = std::thread::spawn(move || exec_when_adopted(priority)).join();
        return ended.unwrap_or_else(|_| bail!("the thread panicked"));
    }
    if spec.kind == Kind::Alarm {
        alarm(Duration::from_millis(7))?;
    }
    let epoll = Epoll::new()?;
    let page = Page::new()?;
    let _memory = (spec.kind == Kind::Large).then(|| black_box(vec![1_u8; 32 << 20]));
    let mut duty = Duty::new(spec.duty)?;
    let units = units_in(spec.kind.compute_ns())?;
    let (mut last_ns, mut entered) = (monotonic_ns()?, false);
    let mut next_ns = last_ns;
    loop {
        match spec.kind {
            Kind::Spin
            | Kind::Large
            | Kind::Alarm
            | Kind::Hold
            | Kind::Forge
            | Kind::Siege
            | Kind::Become => compute(),
            Kind::Sleep => std::thread::sleep(Duration::from_millis(2)),
            Kind::Tick => pass_tick()?,
            Kind::Call => call()?,
            Kind::Epoll => [16, 17].into_iter().try_for_each(|most| epoll.wait(most, 1))?,
            Kind::Reader => read_tasks()?,
            Kind::Mixed => {
                compute_units(units);
                call()?;
                touch()?;
            }
            Kind::Await => {
                compute_units(units);
                epoll.wait(17, 20)?;
            }
            Kind::Fresh => {
                page.give_back()?;
                compute_units(units);
                page.have_written()?;
            }
            Kind::Burst => {
                compute();
                if !entered && board.started() {
                    call()?;
                    entered = true;
                }
            }
            Kind::Enter => {
                compute_units(units);
                call()?;
            }
            Kind::Periodic => {
                compute_units(units);
                next_ns = (next_ns + PERIODIC_NS).max(monotonic_ns()?);
                sleep_until(next_ns)?;
            }
            Kind::Fork | Kind::Job => fork_once(units)?,
            Kind::Exec => exec_once()?,
            Kind::Thread => thread_once()?,
            Kind::Touch | Kind::Lock => touch()?,
            Kind::Duty => duty.period()?,
        }
        if spec.clocked {
            let now_ns = monotonic_ns()?;
            board.longest(slot).fetch_max(now_ns - last_ns, Ordering::Relaxed);
            last_ns = now_ns;
        }
        done.fetch_add(units.max(1), Ordering::Relaxed);
    }
}

/// For how long [`Kind::Hold`] holds.
pub const HOLD: Duration = Duration::from_millis(400);
/// Period of [`Kind::Periodic`].
const PERIODIC_NS: u64 = 5_000_000;

fn become_it(spec: &Spec, slot: usize) -> Result<()> {
    let comm = format!("art-{}-{slot}", format!("{:?}", spec.kind).to_lowercase());
    nix::sys::prctl::set_name(&CString::new(comm)?)?;
    if let Some(procs) = &spec.cgroup {
        fs::write(procs, "0").with_context(|| format!("join {}", procs.display()))?;
    }
    if spec.nice != 0 {
        set_nice(0, spec.nice)?;
    }
    if spec.kind == Kind::Lock {
        lock_memory()?;
    }
    if let Some(cpus) = spec.cpus {
        cpus.bind(0)?;
    }
    if spec.deadline {
        let used = Duty::PERIOD * spec.duty / 100;
        Policy::set_deadline(2 * used, Duty::PERIOD)?;
    }
    if let Some(priority) = spec.fifo.filter(|_| spec.kind != Kind::Become) {
        fifo(priority)?;
    }
    Ok(())
}

/// Returns only with an error.
fn exec_when_adopted(priority: i32) -> Result<()> {
    fifo(priority)?;
    until("the thread is adopted", PATIENCE, || {
        Ok(Policy::of(0)?.is_some_and(|now| now.policy == EXT))
    })?;
    Err(Command::new("sleep").arg("600").exec()).context("sleep")
}

/// No page of this process is away from now on, nor of what it will map.
pub(crate) fn lock_memory() -> Result<()> {
    use nix::sys::mman::{MlockAllFlags, mlockall};
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE).context("mlockall")
}

/// Puts the caller into SCHED_FIFO.
fn fifo(priority: i32) -> Result<()> {
    set_policy(libc::SCHED_FIFO, priority)
}

/// Puts the caller into SCHED_FIFO, but not its children: who drives a test must
/// not depend on the scheduler under test.
pub fn above_all() -> Result<()> {
    set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 80)
}

fn set_policy(policy: i32, priority: i32) -> Result<()> {
    set_policy_of(0, policy, priority)
}

/// Puts a task into SCHED_FIFO, or back into SCHED_OTHER without a priority.
pub fn set_fifo(pid: u32, priority: Option<i32>) -> Result<()> {
    let (policy, priority) = priority.map_or((libc::SCHED_OTHER, 0), |p| (libc::SCHED_FIFO, p));
    set_policy_of(pid.cast_signed(), policy, priority)
}

/// Sets a task's nice value.
pub fn set_nice(pid: u32, nice: i32) -> Result<()> {
    // SAFETY: plain integers; 0 means the caller.
    let r = unsafe { libc::setpriority(libc::PRIO_PROCESS, pid, nice) };
    ensure!(r == 0, "nice {nice}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// `pid` 0: the caller.
fn set_policy_of(pid: i32, policy: i32, priority: i32) -> Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: param lives through the call.
    let r = unsafe { libc::sched_setscheduler(pid, policy, &param) };
    ensure!(r == 0, "policy {policy}, priority {priority}: {}", std::io::Error::last_os_error());
    Ok(())
}
