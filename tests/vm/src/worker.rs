// SPDX-License-Identifier: GPL-2.0-only
//! One task of a known kind: what it does, its priority, its CPUs. A worker is
//! a process of its own (`artis-guest worker …`), so that the scheduler sees
//! what it would see of any program, and counts its work on a [`Board`].

use std::ffi::CString;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use nix::sys::time::TimeValLike;
use nix::sys::wait::waitpid;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{ForkResult, fork};

use crate::cpus::Cpus;
use crate::progress::Board;

/// What a worker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// computes, without a system call
    Spin,
    /// computes a given amount after the start signal, then ends
    Fixed,
    /// sleeps 2 ms, again and again
    Sleep,
    /// enters the kernel all the time
    Call,
    /// computes for 6 ms, then enters the kernel and faults a few times
    Mixed,
    /// forks, the child exits, waits for it
    Fork,
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
    /// Share of a CPU in percent, for the kind duty
    #[arg(long, default_value_t = 25)]
    pub duty: u32,
    /// Amount of work, for the kind fixed
    #[arg(long, default_value_t = 0)]
    pub work: u64,
    /// cgroup.procs of the group it joins
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
}

impl Spec {
    /// A worker of this kind with nothing special.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, cpus: None, nice: 0, fifo: None, duty: 25, work: 0, cgroup: None }
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
        a.extend([format!("--duty={}", self.duty), format!("--work={}", self.work)]);
        a.extend(self.cpus.map(|c| format!("--cpus={c}")));
        a.extend(self.fifo.map(|f| format!("--fifo={f}")));
        a.extend(self.cgroup.iter().map(|g| format!("--cgroup={}", g.display())));
        a
    }
}

/// Becomes the worker of `slot`; returns only when fixed work is done.
pub fn run(spec: &Spec, board: &Board, slot: usize) -> Result<()> {
    Board::check(slot)?;
    become_it(spec, slot)?;
    let done = board.done(slot);
    if spec.kind == Kind::Fixed {
        while !board.started() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..spec.work {
            compute();
            done.fetch_add(1, Ordering::Relaxed);
        }
        board.ended(slot).store(monotonic_ns()?, Ordering::Release);
        return Ok(());
    }
    let mut duty = Duty::new(spec.duty)?;
    let units = if spec.kind == Kind::Mixed { units_in(6_000_000)? } else { 0 };
    loop {
        match spec.kind {
            Kind::Spin | Kind::Fixed => compute(),
            Kind::Sleep => std::thread::sleep(Duration::from_millis(2)),
            Kind::Call => call()?,
            Kind::Mixed => mixed(units)?,
            Kind::Fork => fork_once()?,
            Kind::Exec => exec_once()?,
            Kind::Thread => thread_once()?,
            Kind::Touch | Kind::Lock => touch()?,
            Kind::Duty => duty.period()?,
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

fn become_it(spec: &Spec, slot: usize) -> Result<()> {
    let comm = format!("art-{}-{slot}", format!("{:?}", spec.kind).to_lowercase());
    nix::sys::prctl::set_name(&CString::new(comm)?)?;
    if let Some(procs) = &spec.cgroup {
        fs::write(procs, "0").with_context(|| format!("join {}", procs.display()))?;
    }
    if spec.nice != 0 {
        // SAFETY: plain integers; 0 means the caller.
        let r = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, spec.nice) };
        ensure!(r == 0, "nice {}: {}", spec.nice, std::io::Error::last_os_error());
    }
    if spec.kind == Kind::Lock {
        nix::sys::mman::mlockall(
            nix::sys::mman::MlockAllFlags::MCL_CURRENT | nix::sys::mman::MlockAllFlags::MCL_FUTURE,
        )
        .context("mlockall")?;
    }
    if let Some(cpus) = spec.cpus {
        cpus.bind(0)?;
    }
    if let Some(priority) = spec.fifo {
        fifo(priority)?;
    }
    Ok(())
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

/// `pid` 0: the caller.
fn set_policy_of(pid: i32, policy: i32, priority: i32) -> Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: param lives through the call.
    let r = unsafe { libc::sched_setscheduler(pid, policy, &param) };
    ensure!(r == 0, "SCHED_FIFO {priority}: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Puts all processes whose name begins so into SCHED_FIFO; returns how many.
pub fn raise_threads(prefix: &str, priority: i32) -> Result<u32> {
    let mut raised = 0;
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<i32>().ok()) else {
            continue;
        };
        // who is gone by now has no name
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if comm.starts_with(prefix) {
            set_policy_of(pid, libc::SCHED_FIFO, priority).context(comm)?;
            raised += 1;
        }
    }
    Ok(raised)
}

/// The monotonic clock in nanoseconds.
pub fn monotonic_ns() -> Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds().unsigned_abs())
}

/// A unit of computing, well below a millisecond.
pub fn compute() {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..20_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

fn call() -> Result<()> {
    fs::metadata("/proc/self/stat").context("stat")?;
    fs::write("/dev/null", b"x").context("write to /dev/null")?;
    Ok(())
}

fn mixed(units: u64) -> Result<()> {
    for _ in 0..units {
        compute();
    }
    call()?;
    touch()
}

/// Units of computing in so many nanoseconds of an undisturbed CPU.
fn units_in(ns: u64) -> Result<u64> {
    let mut best = u64::MAX;
    for _ in 0..20 {
        let start = monotonic_ns()?;
        compute();
        best = best.min(monotonic_ns()? - start);
    }
    Ok(ns / best.max(1))
}

fn fork_once() -> Result<()> {
    // SAFETY: this process has one thread, and the child only exits.
    match unsafe { fork() }.context("fork")? {
        // SAFETY: ends the child without running anything of the parent's.
        ForkResult::Child => unsafe { libc::_exit(0) },
        ForkResult::Parent { child } => waitpid(child, None).context("wait")?,
    };
    Ok(())
}

fn exec_once() -> Result<()> {
    let status = Command::new("true").status().context("run true")?;
    ensure!(status.success(), "true: {status}");
    Ok(())
}

fn thread_once() -> Result<()> {
    let t = std::thread::Builder::new().spawn(compute).context("start a thread")?;
    t.join().map_err(|_| anyhow::anyhow!("the thread panicked"))
}

fn touch() -> Result<()> {
    const LEN: usize = 256 << 10;
    let (rw, private) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping, unmapped below, used by nobody else.
    unsafe {
        let p = libc::mmap(std::ptr::null_mut(), LEN, rw, private, -1, 0);
        ensure!(p != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        for i in (0..LEN).step_by(4096) {
            p.cast::<u8>().add(i).write_volatile(1);
        }
        ensure!(libc::munmap(p, LEN) == 0, "munmap");
    }
    Ok(())
}

/// A load of a fixed share: computes until the task has used its share of CPU
/// time, then sleeps until the next period.
struct Duty {
    use_ns: u64,
    next_ns: u64,
}

impl Duty {
    const PERIOD_NS: u64 = 20_000_000;

    fn new(percent: u32) -> Result<Self> {
        ensure!(percent <= 100, "a duty of {percent} %");
        Ok(Self { use_ns: Self::PERIOD_NS / 100 * u64::from(percent), next_ns: monotonic_ns()? })
    }

    fn period(&mut self) -> Result<()> {
        let used = || -> Result<u64> {
            let t = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
            Ok(t.num_nanoseconds().unsigned_abs())
        };
        let end = used()? + self.use_ns;
        while used()? < end {
            compute();
        }
        self.next_ns += Self::PERIOD_NS;
        let now = monotonic_ns()?;
        if self.next_ns > now {
            std::thread::sleep(Duration::from_nanos(self.next_ns - now));
        } else if self.use_ns < Self::PERIOD_NS {
            self.next_ns = now;
        }
        Ok(())
    }
}
