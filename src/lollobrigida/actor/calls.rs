// SPDX-License-Identifier: GPL-2.0-only
//! The endangering calls of scenes, made truly. Everything they need is opened before;
//! libc's wrappers are used only where they make exactly one call.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::{NonNull, null_mut};

use crate::scene::CallKind;

const PAGE: usize = 4096;
/// Pages that `fault` makes absent again at once.
const FAULT_PAGES: usize = 64;
/// Bytes of `mmap` and of `lock`.
const BULK: usize = 64 << 10;
/// Enough for a child that only exits.
const CHILD_STACK: usize = 16 << 10;

/// Makes the calls of one kind.
pub(super) struct Caller {
    kind: CallKind,
    pipe: Option<(OwnedFd, OwnedFd)>,
    socket: Option<(UnixStream, UnixStream)>,
    /// The shared file that `lock` writes to, and where.
    file: Option<(i32, i64)>,
    /// Pages for `mprotect` and `fault`.
    pages: Option<Pages>,
    /// The next page to fault.
    next_page: usize,
    bulk: Vec<u8>,
}

/// What was made of one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Made {
    /// System calls.
    pub calls: u64,
    /// Page faults without a call.
    pub faults: u64,
}

impl Caller {
    /// Opens what the kind needs. After the process has locked its memory: locked pages
    /// cannot be made absent. `file` is the descriptor and offset that all tasks'
    /// `lock` calls write to.
    pub fn prepare(kind: CallKind, file: (i32, i64)) -> io::Result<Self> {
        let bulk = match kind {
            CallKind::Lock => BULK,
            CallKind::Fork => CHILD_STACK,
            _ => 0,
        };
        Ok(Self {
            kind,
            pipe: if kind == CallKind::Pipe { Some(nix::unistd::pipe()?) } else { None },
            socket: if kind == CallKind::Socket { Some(UnixStream::pair()?) } else { None },
            file: (kind == CallKind::Lock).then_some(file),
            pages: match kind {
                CallKind::Fault => {
                    let pages = Pages::map(FAULT_PAGES)?;
                    // a fault must bring one page; refused by kernels that know no other
                    // SAFETY: advice about a mapping of our own.
                    unsafe { libc::madvise(pages.begin(), pages.bytes, libc::MADV_NOHUGEPAGE) };
                    Some(pages)
                }
                CallKind::Mprotect => Some(Pages::map(1)?),
                _ => None,
            },
            next_page: 0,
            bulk: vec![1; bulk],
        })
    }

    /// One turn: the kind's calls, which must all succeed.
    pub fn make(&mut self) -> io::Result<Made> {
        let calls = match self.kind {
            CallKind::Getppid => {
                // SAFETY: no arguments.
                unsafe { libc::syscall(libc::SYS_getppid) };
                1
            }
            CallKind::Yield => {
                // SAFETY: no arguments.
                checked(unsafe { libc::syscall(libc::SYS_sched_yield) })?;
                1
            }
            CallKind::Sysinfo => {
                let mut info = std::mem::MaybeUninit::<libc::sysinfo>::uninit();
                // SAFETY: writes one struct sysinfo.
                checked(unsafe { libc::sysinfo(info.as_mut_ptr()) }.into())?;
                1
            }
            CallKind::Stat => {
                let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
                // SAFETY: reads a C string, writes one struct stat.
                checked(unsafe { libc::stat(c"/".as_ptr(), stat.as_mut_ptr()) }.into())?;
                1
            }
            CallKind::Open => open_and_close()?,
            CallKind::Pipe => self.through_pipe()?,
            CallKind::Socket => self.through_socket()?,
            CallKind::Mmap => {
                let pages = Pages::map(BULK / PAGE)?;
                (0..BULK / PAGE).for_each(|i| pages.touch(i));
                drop(pages);
                2
            }
            CallKind::Mprotect => self.protect()?,
            CallKind::Fault => return self.fault(),
            CallKind::Lock => self.write_shared()?,
            CallKind::Fork => self.fork()?,
        };
        Ok(Made { calls, faults: 0 })
    }

    fn through_pipe(&self) -> io::Result<u64> {
        let Some((read, write)) = &self.pipe else { return Ok(0) };
        let mut byte = 1u8;
        // SAFETY: reads and writes one byte that lives here.
        unsafe {
            checked(libc::write(write.as_raw_fd(), (&raw const byte).cast(), 1) as i64)?;
            checked(libc::read(read.as_raw_fd(), (&raw mut byte).cast(), 1) as i64)?;
        }
        Ok(2)
    }

    fn through_socket(&self) -> io::Result<u64> {
        let Some((one, other)) = &self.socket else { return Ok(0) };
        let mut byte = 1u8;
        // SAFETY: reads and writes one byte that lives here. send and recv are sendto(2)
        // and recvfrom(2).
        unsafe {
            checked(libc::send(one.as_raw_fd(), (&raw const byte).cast(), 1, 0) as i64)?;
            checked(libc::recv(other.as_raw_fd(), (&raw mut byte).cast(), 1, 0) as i64)?;
        }
        Ok(2)
    }

    fn protect(&self) -> io::Result<u64> {
        let Some(pages) = &self.pages else { return Ok(0) };
        for protection in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
            // SAFETY: a mapping of our own; nobody writes to it meanwhile.
            checked(unsafe { libc::mprotect(pages.begin(), pages.bytes, protection) }.into())?;
        }
        Ok(2)
    }

    fn fault(&mut self) -> io::Result<Made> {
        let Some(pages) = &self.pages else { return Ok(Made::default()) };
        let mut calls = 0;
        if self.next_page == FAULT_PAGES {
            // SAFETY: a mapping of our own, whose bytes mean nothing.
            let done = unsafe { libc::madvise(pages.begin(), pages.bytes, libc::MADV_DONTNEED) };
            checked(done.into())?;
            self.next_page = 0;
            calls = 1;
        }
        pages.touch(self.next_page);
        self.next_page += 1;
        Ok(Made { calls, faults: 1 })
    }

    fn write_shared(&self) -> io::Result<u64> {
        let Some((file, at)) = self.file else { return Ok(0) };
        // SAFETY: reads as many bytes as there are.
        let done = unsafe { libc::pwrite(file, self.bulk.as_ptr().cast(), self.bulk.len(), at) };
        checked(done as i64)?;
        Ok(1)
    }

    /// The child shares our memory and we sleep until it has exited: nothing is copied.
    fn fork(&mut self) -> io::Result<u64> {
        extern "C" fn exit(_: *mut c_void) -> i32 {
            // SAFETY: ends this process at once, nothing of the parent's is run.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
            0
        }
        // SAFETY: inside the vector or one behind.
        let top = unsafe { self.bulk.as_mut_ptr().add(self.bulk.len()) };
        let top = top.map_addr(|a| a & !15).cast::<c_void>();
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child runs `exit` alone, on a stack that nobody else uses, while we
        // sleep (CLONE_VFORK).
        let child = unsafe { libc::clone(exit, top, flags, null_mut()) };
        checked(child.into())?;
        let mut calls = 1;
        loop {
            calls += 1;
            // SAFETY: our child; no status is asked for. waitpid is wait4(2).
            let done = unsafe { libc::waitpid(child, null_mut(), 0) };
            match checked(done.into()) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(()) => return Ok(calls),
            }
        }
    }
}

fn open_and_close() -> io::Result<u64> {
    // SAFETY: reads a C string.
    let file = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    checked(file.into())?;
    // SAFETY: opened here, used nowhere else.
    checked(unsafe { libc::close(file) }.into())?;
    Ok(2)
}

fn checked(done: i64) -> io::Result<()> {
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Anonymous memory of our own, unmapped when dropped.
struct Pages {
    begin: NonNull<c_void>,
    bytes: usize,
}

impl Pages {
    fn map(pages: usize) -> io::Result<Self> {
        let bytes = pages * PAGE;
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever there is room.
        let begin = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        if begin == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let begin = NonNull::new(begin).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { begin, bytes })
    }

    fn begin(&self) -> *mut c_void {
        self.begin.as_ptr()
    }

    fn touch(&self, page: usize) {
        assert!(page * PAGE < self.bytes);
        // SAFETY: inside the mapping.
        unsafe { self.begin.as_ptr().cast::<u8>().add(page * PAGE).write_volatile(1) };
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, used by nobody any more.
        unsafe { libc::munmap(self.begin(), self.bytes) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says where")]
mod tests {
    use super::*;

    /// Page faults of this thread so far.
    fn faults() -> i64 {
        let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD);
        usage.unwrap().minor_page_faults()
    }

    #[test]
    fn fault_faults_at_each_turn_also_in_memory_it_has_touched() {
        let mut caller = Caller::prepare(CallKind::Fault, (-1, 0)).unwrap();
        let before = faults();
        let turns = 10 * FAULT_PAGES as i64;
        (0..turns).for_each(|_| assert_eq!(caller.make().unwrap().faults, 1));
        assert!(faults() - before >= turns, "{} of {turns}", faults() - before);
    }

    #[test]
    fn a_call_that_fails_is_an_error() {
        assert!(Caller::prepare(CallKind::Lock, (-1, 0)).unwrap().make().is_err());
    }
}
