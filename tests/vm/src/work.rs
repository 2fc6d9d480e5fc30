// SPDX-License-Identifier: GPL-2.0-only
//! What workers do between two counts, and by which clock.

use std::fs;
use std::hint::black_box;
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;
use std::ptr::NonNull;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libc::c_void;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::time::TimeValLike;
use nix::sys::wait::waitpid;
use nix::time::{ClockId, ClockNanosleepFlags, clock_getres, clock_gettime, clock_nanosleep};
use nix::unistd::{ForkResult, fork};

/// The monotonic clock in nanoseconds.
pub fn monotonic_ns() -> Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds().unsigned_abs())
}

/// Sleeps until this time of the monotonic clock.
pub(crate) fn sleep_until(ns: u64) -> Result<()> {
    let until = Duration::from_nanos(ns).into();
    Ok(clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until)
        .map(drop)?)
}

/// A unit of computing, well below a millisecond.
// Not inlined, so that all have the same loop: one that spans two pages is five times as slow in
// emulation.
#[inline(never)]
pub fn compute() {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..20_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

pub(crate) fn call() -> Result<()> {
    fs::metadata("/proc/self/stat").context("stat")?;
    fs::write("/dev/null", b"x").context("write to /dev/null")?;
    Ok(())
}

/// Around a tick, a task that the tick is to find on its CPU runs for this long before and after.
const BESIDE_TICK_NS: u64 = 200_000;

/// Runs while the kernel's next tick is due, and sleeps until then. All CPUs have theirs when the
/// monotonic clock is a multiple of the period: tick_setup_device(), kernel/time/tick-common.c.
pub(crate) fn pass_tick() -> Result<()> {
    let period_ns = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)?.num_nanoseconds().unsigned_abs();
    let tick_ns = (monotonic_ns()? + BESIDE_TICK_NS).next_multiple_of(period_ns);
    sleep_until(tick_ns - BESIDE_TICK_NS)?;
    while monotonic_ns()? < tick_ns + BESIDE_TICK_NS {}
    Ok(())
}

/// A set of descriptors of which none is ever ready.
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Result<Self> {
        // SAFETY: it takes a number.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        ensure!(fd >= 0, "epoll_create1: {}", std::io::Error::last_os_error());
        // SAFETY: it is new, and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Waits for up to `most` events, for `ms`.
    pub fn wait(&self, most: usize, ms: i32) -> Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 32];
        let room = libc::c_int::try_from(most.min(events.len()))?;
        // SAFETY: there is room for so many.
        let n = unsafe { libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), room, ms) };
        let error = std::io::Error::last_os_error();
        // being stopped and continued ends it
        ensure!(n == 0 || error.kind() == ErrorKind::Interrupted, "epoll_wait: {n}, {error}");
        Ok(())
    }
}

/// A page that the process can be without.
pub(crate) struct Page(NonNull<c_void>);

impl Page {
    const BYTES: usize = 4096;

    pub fn new() -> Result<Self> {
        let bytes = NonZeroUsize::new(Self::BYTES).context("no bytes")?;
        let rw = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        Ok(Self(unsafe { mmap_anonymous(None, bytes, rw, MapFlags::MAP_PRIVATE) }?))
    }

    /// From now on the process is without it, until it is touched.
    pub fn give_back(&self) -> Result<()> {
        // SAFETY: the page is this one's own, and there is no reference to what it holds.
        Ok(unsafe { madvise(self.0, Self::BYTES, MmapAdvise::MADV_DONTNEED) }?)
    }

    /// The kernel touches it, in a call that is harmless and not the vDSO's.
    pub fn have_written(&self) -> Result<()> {
        let (clock, to) = (libc::CLOCK_MONOTONIC, self.0.as_ptr());
        // SAFETY: there is room for a timespec.
        let r = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, to) };
        ensure!(r == 0, "clock_gettime: {}", std::io::Error::last_os_error());
        Ok(())
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: this was mapped above and nothing uses it any more.
        let _ = unsafe { munmap(self.0, Self::BYTES) };
    }
}

/// Has SIGALRM come again and again, and a handler that does nothing.
pub(crate) fn alarm(period: Duration) -> Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler does nothing.
    unsafe { sigaction(Signal::SIGALRM, &action) }?;
    let time = libc::timeval { tv_sec: 0, tv_usec: i64::from(period.subsec_micros()) };
    let timer = libc::itimerval { it_interval: time, it_value: time };
    // SAFETY: the kernel only reads it.
    let set = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    ensure!(set == 0, "setitimer: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Waits for a grace period of RCU (kernel/sched/membarrier.c).
pub(crate) fn grace_period() -> Result<()> {
    // SAFETY: plain integers.
    let r = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    ensure!(r == 0, "membarrier: {}", std::io::Error::last_os_error());
    Ok(())
}

/// Looks at each thread of the machine, all in one RCU read-side section (block/ioprio.c).
pub(crate) fn read_tasks() -> Result<()> {
    const IOPRIO_WHO_USER: libc::c_int = 3;
    // SAFETY: plain integers; 0 is the caller's user.
    let r = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_USER, 0) };
    ensure!(r >= 0, "ioprio_get: {}", std::io::Error::last_os_error());
    Ok(())
}

pub(crate) fn compute_units(units: u64) {
    for _ in 0..units {
        compute();
    }
}

/// Units of computing in so many nanoseconds of an undisturbed CPU.
pub(crate) fn units_in(ns: u64) -> Result<u64> {
    if ns == 0 {
        return Ok(0);
    }
    let mut best = u64::MAX;
    for _ in 0..20 {
        let start = monotonic_ns()?;
        compute();
        best = best.min(monotonic_ns()? - start);
    }
    Ok(ns / best.max(1))
}

/// Waits for a child that computes for so many units.
pub(crate) fn fork_once(units: u64) -> Result<()> {
    // SAFETY: this process has one thread.
    match unsafe { fork() }.context("fork")? {
        ForkResult::Child => {
            compute_units(units);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(0) }
        }
        ForkResult::Parent { child } => waitpid(child, None).context("wait")?,
    };
    Ok(())
}

pub(crate) fn exec_once() -> Result<()> {
    let status = Command::new("true").status().context("run true")?;
    ensure!(status.success(), "true: {status}");
    Ok(())
}

pub(crate) fn thread_once() -> Result<()> {
    let t = std::thread::Builder::new().spawn(compute).context("start a thread")?;
    t.join().map_err(|_| anyhow::anyhow!("the thread panicked"))
}

pub(crate) fn touch() -> Result<()> {
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

/// A load of a fixed share: computes until the task has used its share of CPU time, then
/// sleeps until the next period. What it used too much (a virtual CPU that its host does not
/// run is a CPU in use) it uses less in the periods that follow.
pub(crate) struct Duty {
    use_ns: i64,
    owed_ns: i64,
    next_ns: u64,
}

impl Duty {
    pub(crate) const PERIOD: Duration = Duration::from_millis(20);
    const PERIOD_NS: u64 = Self::PERIOD.as_nanos() as u64;

    pub(crate) fn new(percent: u32) -> Result<Self> {
        ensure!(percent <= 100, "a duty of {percent} %");
        let use_ns = i64::try_from(Self::PERIOD_NS)? / 100 * i64::from(percent);
        Ok(Self { use_ns, owed_ns: 0, next_ns: monotonic_ns()? })
    }

    pub(crate) fn period(&mut self) -> Result<()> {
        self.owed_ns += self.use_ns;
        let start = thread_ns()?;
        while thread_ns()? - start < self.owed_ns {
            compute();
        }
        self.owed_ns -= thread_ns()? - start;
        self.next_ns += Self::PERIOD_NS;
        let now = monotonic_ns()?;
        let late = now.saturating_sub(self.next_ns) / Self::PERIOD_NS;
        self.next_ns += late * Self::PERIOD_NS;
        // time lost while it could not run is not made up for
        self.owed_ns = (self.owed_ns + self.use_ns * i64::try_from(late)?).min(0);
        if self.next_ns > now {
            std::thread::sleep(Duration::from_nanos(self.next_ns - now));
        }
        Ok(())
    }
}

/// CPU time of the calling thread, ns.
fn thread_ns() -> Result<i64> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.num_nanoseconds())
}
