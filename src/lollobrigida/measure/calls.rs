// SPDX-License-Identifier: GPL-2.0-only
//! System calls, as the kernel counts them: tracepoint raw_syscalls:sys_enter, without
//! rt_sigreturn(2), which is how a task comes back from the signal that stops it.

use std::ffi::CString;
use std::os::fd::AsRawFd;
use std::{fs, io};

use perf_event::events::Tracepoint;
use perf_event::{Builder, Counter};

use crate::measure::{descriptors, perf};

/// Where tracefs is mounted, or shows through debugfs.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Open while the run lasts.
pub struct Calls(Vec<Counter>);

impl Calls {
    /// Counts from now on, of a task but not of its children.
    ///
    /// # Errors
    /// In words, with what would make it possible.
    pub fn open(pids: &[i32]) -> Result<Self, String> {
        let id = |root: &&str| {
            let text = fs::read_to_string(format!("{root}/events/raw_syscalls/sys_enter/id"));
            text.ok()?.trim().parse().ok()
        };
        let id = TRACEFS.iter().find_map(id).ok_or_else(|| {
            "the tracepoint raw_syscalls:sys_enter cannot be found in /sys/kernel/tracing: run as \
             root, mount it (mount -t tracefs tracefs /sys/kernel/tracing); the kernel needs \
             CONFIG_FTRACE_SYSCALLS"
                .to_owned()
        })?;
        Self::open_id(pids, id).map_err(|err| perf::why(&err, -1))
    }

    fn open_id(pids: &[i32], id: u64) -> io::Result<Self> {
        descriptors::make_room(pids.len())?;
        let counter = |&pid: &i32| {
            let mut builder = Builder::new(Tracepoint::with_id(id));
            builder.observe_pid(pid).any_cpu().enabled(true).include_kernel().include_hv();
            let counter = builder.build()?;
            leave_out_sigreturn(&counter)?;
            Ok(counter)
        };
        pids.iter().map(counter).collect::<io::Result<_>>().map(Self)
    }

    /// By task.
    ///
    /// # Errors
    /// The kernel's.
    pub fn read(&mut self) -> io::Result<Vec<u64>> {
        self.0.iter_mut().map(Counter::read).collect()
    }
}

fn leave_out_sigreturn(counter: &Counter) -> io::Result<()> {
    /// include/uapi/linux/perf_event.h
    const SET_FILTER: libc::Ioctl = libc::_IOW::<*const libc::c_char>(b'$' as u32, 6);
    let filter = CString::new(format!("id != {}", libc::SYS_rt_sigreturn))?;
    // SAFETY: the counter is an open perf event; the kernel copies the text, which ends with
    // a zero.
    match unsafe { libc::ioctl(counter.as_raw_fd(), SET_FILTER, filter.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
