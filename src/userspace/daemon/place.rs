// SPDX-License-Identifier: GPL-2.0-only
//! The daemon is a task among those it schedules: where it runs, and how urgent
//! it is.

use nix::sched::{CpuSet as Affinity, sched_setaffinity};
use nix::unistd::Pid;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::stdio::stdin;

use super::setup::Setup;

/// The nice value of the daemon's threads: nine times the weight of others. At -20 tasks that forked made
/// no progress for 2 s beside it on the last NRT CPU (docs/decisions/0026-queues.md).
pub const NICE: i32 = -10;
/// There is room for so many open files at most from the beginning: 32 KiB of the kernel's memory.
const FILES_MAX: u64 = 4096;
/// Bytes, in two parts: each is less than what the allocator maps by itself and returns to the kernel, and
/// both are what it leaves at the end of the heap when it cuts that (128 KiB each, mallopt(3)).
const HEAP_RESERVE: [usize; 2] = [64 << 10; 2];

/// Says what is unwise about the setup, and keeps all threads of the daemon off
/// its RT CPUs. That ends with the daemon, so there is nothing to put back.
pub fn take(setup: &Setup) {
    for warning in &setup.warnings {
        log::warn!("{warning}");
    }
    stay_on_nrt(setup);
}

/// Keeps all threads of the daemon off the RT CPUs of `setup`.
pub fn stay_on_nrt(setup: &Setup) {
    let mut affinity = Affinity::new();
    for cpu in setup.partition.nrt.iter() {
        // fails beyond 1024 CPUs, where a partition has none
        let _ = affinity.set(cpu);
    }
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Err(error) = sched_setaffinity(Pid::from_raw(thread), &affinity) {
            log::warn!(
                "cannot keep the daemon's thread {thread} off the RT CPUs ({error}): does a cpuset \
                 hold it there?"
            );
        }
    }
}

/// Makes the daemon as urgent as can be; threads made later inherit it.
///
/// It must get a CPU soon to take the machine over, to change and to give it back, whatever
/// the load: at nice 0 `ctl rt-cpus` took 9 to 18 s with 14 stressors and 160 tasks of hackbench for
/// two NRT CPUs (6.18, in emulation).
///
/// Its memory stays: where the disk is busy, what it needs for the end would come late. So does the
/// room for its files (see [`make_room_for_files`]).
pub fn be_prompt() {
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        log::warn!("cannot raise the daemon's own priority ({error}): it may stop late under load");
    }
    // what is mapped from now on, stacks of threads above all, once it is used
    let locked = mlockall(MlockAllFlags::CURRENT)
        .and_then(|()| mlockall(MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT));
    if let Err(error) = locked {
        log::info!("the daemon's memory may be written out when memory is short: {error}");
    }
    if let Err(error) = make_room_for_files() {
        log::info!("the daemon may wait for the kernel's RCU thread to open a file: {error}");
    }
}

/// Has `HEAP_RESERVE` bytes of the heap in use once, so that what it takes later than at the start, and
/// frees again, makes its memory no larger.
pub fn reserve_heap() {
    drop(std::hint::black_box(HEAP_RESERVE.map(|bytes| vec![1_u8; bytes])));
}

/// The table of open files is enlarged now, to what the limit allows. Later the kernel would wait for a
/// grace period of RCU, since threads share the table (kernel/fs/file.c, `expand_fdtable()`), and no
/// grace period ends where real-time tasks hold all NRT CPUs. The table never shrinks.
fn make_room_for_files() -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(FILES_MAX).min(FILES_MAX);
    let last = i32::try_from(limit).unwrap_or(i32::MAX) - 1;
    drop(fcntl_dupfd_cloexec(stdin(), last)?);
    Ok(())
}
