// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon may do, also where no service manager limits it: few capabilities from its
//! begin on, and the system calls that a daemon makes once it is in charge.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use capctl::caps::{Cap, CapSet, CapState, bounding};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};
use syscalls::Sysno;

use crate::cli::Opts;
use crate::config::Address;

/// Tells from which value on users without CAP_SYS_ADMIN may not attach to tracepoints: 3, which
/// Debian and Ubuntu have added to the kernel's.
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// System calls that the daemon, its libraries and the C library make after the begin, by what for.
/// Names that an architecture does not have are left out.
const CALLS: &[&str] = &[
    // memory
    "brk madvise membarrier mlock mmap mprotect mremap munmap munlock",
    // files: rules, /proc, what is saved, the terminal
    "access chmod chown close close_range copy_file_range dup dup2 dup3 faccessat faccessat2 fchmod \
     fchmodat fchmodat2 fchown fchownat fcntl fdatasync flock fstat fstatfs fsync ftruncate getcwd \
     getdents64 ioctl lchown lseek lstat memfd_create mkdir mkdirat newfstatat open openat openat2 \
     pipe pipe2 pread64 preadv pwrite64 pwritev read readlink readlinkat readv rename renameat \
     renameat2 rmdir stat statfs statx umask unlink unlinkat utimensat write writev",
    // sockets: ctl, the feed, metrics, the service manager, names of users
    "accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg \
     sendmmsg sendmsg sendto setsockopt shutdown socket socketpair",
    // waiting
    "clock_nanosleep epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd2 futex \
     futex_waitv nanosleep poll ppoll pselect6 restart_syscall select",
    // threads and signals; the end, also by abort(3)
    "clone clone3 exit exit_group gettid kill prctl rseq rt_sigaction rt_sigpending rt_sigprocmask \
     rt_sigreturn rt_sigsuspend rt_sigtimedwait set_robust_list sigaltstack tgkill",
    // what it is, and what the machine is
    "clock_getres clock_gettime getcpu getegid geteuid getgid getgroups getpgrp getpid getppid \
     getrandom getresgid getresuid getrlimit getrusage getsid gettimeofday getuid prlimit64 sysinfo \
     time times uname",
    // tasks: their policies, affinities, and itself
    "getpriority pidfd_open sched_get_priority_max sched_get_priority_min sched_getaffinity \
     sched_getattr sched_getparam sched_getscheduler sched_setaffinity sched_setattr \
     sched_setscheduler sched_yield setpriority",
    // the scheduler
    "bpf perf_event_open",
];

/// Gives up the capabilities that no option of `opts` needs, for this thread and those that it
/// makes, and gains none any more by executing a program.
///
/// # Errors
/// When the kernel refuses. What was given up by then is.
pub fn limit(opts: &Opts) -> Result<()> {
    // what BPF's maps and the daemon itself lock in memory; it takes a capability that goes below
    scx_utils::try_set_rlimit_infinity();
    let needed = needed(opts, perf_is_paranoid());
    capctl::prctl::set_no_new_privs().context("PR_SET_NO_NEW_PRIVS")?;
    let mut state = CapState::get_current().context("reading the capabilities")?;
    if state.effective.has(Cap::SETPCAP) {
        for cap in Cap::iter().filter(|cap| !needed.has(*cap)) {
            if bounding::read(cap) == Some(true) {
                bounding::drop(cap).with_context(|| format!("dropping {cap}"))?;
            }
        }
        bounding::clear_unknown().context("dropping what is newer than this program")?;
    }
    // ambient ones go with these
    state.inheritable = CapSet::empty();
    state.permitted &= needed;
    state.effective &= needed;
    state.set_current().context("dropping capabilities")
}

/// What the daemon needs up to its end: it attaches programs whenever somebody watches, and to each
/// CPU that comes.
fn needed(opts: &Opts, perf_is_paranoid: bool) -> CapSet {
    // as in dist/scx_artis.service
    let mut needed: CapSet =
        [Cap::BPF, Cap::PERFMON, Cap::SYS_NICE, Cap::SYS_PTRACE, Cap::CHOWN].into_iter().collect();
    if perf_is_paranoid {
        needed.add(Cap::SYS_ADMIN);
    }
    if opts.config.is_some() {
        needed.add(Cap::DAC_READ_SEARCH); // a file in a home directory
    }
    match &opts.metrics.metrics {
        Some(Address::Unix(_)) => needed.add(Cap::DAC_OVERRIDE), // a socket in a folder of others
        Some(Address::Tcp(_)) => needed.add(Cap::NET_BIND_SERVICE),
        None => {}
    }
    needed
}

fn perf_is_paranoid() -> bool {
    let level = fs::read_to_string(PARANOID).ok().and_then(|level| level.trim().parse().ok());
    level.is_none_or(|level: i32| level > 2)
}

/// Has all threads of the process, and those that they make, make no other system calls than a
/// daemon in charge needs: others fail with EPERM, and the kernel's log names each.
///
/// # Errors
/// When the kernel cannot filter calls. Then none is refused.
pub fn filter() -> Result<()> {
    let program = compiled()?;
    let fprog = libc::sock_fprog {
        len: u16::try_from(program.len())?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_LOG;
    // SAFETY: `program` outlives the call, which copies as many instructions as `len` says.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            std::ptr::from_ref(&fprog),
        )
    };
    ensure!(done >= 0, "seccomp(2): {}", io::Error::last_os_error());
    ensure!(done == 0, "thread {done} has a filter of its own");
    Ok(())
}

fn compiled() -> Result<BpfProgram> {
    let names = CALLS.iter().flat_map(|names| names.split_whitespace());
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in names.filter_map(|name| Sysno::from_str(name).ok()) {
        rules.insert(i64::from(call.id()), allowed(call)?);
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refused = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(rules, refused, SeccompAction::Allow, arch)?;
    Ok(filter.try_into()?)
}

/// With which arguments a call is allowed: one of these; none: with any.
fn allowed(call: Sysno) -> Result<Vec<SeccompRule>> {
    let protection = |is, value| SeccompCondition::new(2, Len::Dword, is, value);
    let [write, exec] = [libc::PROT_WRITE, libc::PROT_EXEC].map(|flag| flag as u64);
    let conditions = match call {
        // no memory that is written and executed
        Sysno::mmap => {
            let without = |flag| protection(Is::MaskedEq(flag), 0);
            return Ok(vec![
                SeccompRule::new(vec![without(write)?])?,
                SeccompRule::new(vec![without(exec)?])?,
            ]);
        }
        Sysno::mprotect => vec![protection(Is::MaskedEq(exec), 0)?],
        // no text typed for the user of the terminal
        Sysno::ioctl => [libc::TIOCSTI, libc::TIOCLINUX]
            .map(|request| SeccompCondition::new(1, Len::Dword, Is::Ne, request))
            .into_iter()
            .collect::<Result<_, _>>()?,
        // no signals to others
        Sysno::kill | Sysno::tgkill => {
            let own = u64::from(std::process::id());
            vec![SeccompCondition::new(0, Len::Dword, Is::Eq, own)?]
        }
        _ => return Ok(Vec::new()),
    };
    Ok(vec![SeccompRule::new(conditions)?])
}
