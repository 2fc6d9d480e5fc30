// SPDX-License-Identifier: GPL-2.0-only
//! News of tasks (src/bpf/events/class.bpf.h): what happened to which, told at once.

use std::cell::RefCell;
use std::ffi::CStr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};
use crossbeam_channel::{Receiver, bounded, never};
use libbpf_rs::{Link, RingBuffer, RingBufferBuilder};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;

use super::Scheduler;
use crate::abi::artis_news;
use crate::abi::bindings as abi;
use crate::daemon::classes::Informed;

/// So many are taken at a time: between two times the run loop looks what else there is to do. Each
/// is a task to be looked at in /proc, which takes some tens of us.
const AT_ONCE: usize = 256;

/// What happened to a task; the bits are those of enum artis_news_kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// It is new.
    Fork = abi::artis_news_kind_ARTIS_NEWS_FORK,
    /// It is new, and of a real-time class.
    ForkRt = abi::artis_news_kind_ARTIS_NEWS_FORK_RT,
    /// It runs another program.
    Exec = abi::artis_news_kind_ARTIS_NEWS_EXEC,
    /// It has another name.
    Name = abi::artis_news_kind_ARTIS_NEWS_NAME,
    /// It, or all of its process, is in another cgroup.
    Cgroup = abi::artis_news_kind_ARTIS_NEWS_CGROUP,
    /// It has become a task of a kernel real-time class.
    ToRt = abi::artis_news_kind_ARTIS_NEWS_TO_RT,
    /// It has come back to the ext class.
    FromRt = abi::artis_news_kind_ARTIS_NEWS_FROM_RT,
    /// An RT1+ task, or one of a real-time class, may run elsewhere now.
    Affinity = abi::artis_news_kind_ARTIS_NEWS_AFFINITY,
    /// A call set the policy of such a task, see [`Item::asked`].
    Policy = abi::artis_news_kind_ARTIS_NEWS_POLICY,
}

impl Kind {
    /// Each of them.
    pub const ALL: [Self; 9] = [
        Self::Fork,
        Self::ForkRt,
        Self::Exec,
        Self::Name,
        Self::Cgroup,
        Self::ToRt,
        Self::FromRt,
        Self::Affinity,
        Self::Policy,
    ];
}

/// What a call asked the kernel to make of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// SCHED_*; `None`: the policy that the task had.
    pub policy: Option<u32>,
    /// Priority of SCHED_FIFO or SCHED_RR, else 0.
    pub priority: u32,
    /// Nice value, for policies that have one.
    pub nice: i32,
    /// Its children are not to be real time.
    pub reset_on_fork: bool,
}

/// One of the news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Thread id.
    pub pid: i32,
    /// Process id.
    pub tgid: i32,
    /// What happened.
    pub kind: Kind,
    /// All threads of the process are meant.
    pub all_threads: bool,
    /// Of [`Kind::Name`]: the name of the task from now on, as [`Facts::comm`]; /proc may still tell
    /// the one before.
    ///
    /// [`Facts::comm`]: crate::daemon::classes::facts::Facts::comm
    pub comm: String,
    /// Of [`Kind::Policy`]: what was asked for, by the program or by somebody else.
    pub asked: Option<Asked>,
}

impl Item {
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<artis_news>() {
            return None;
        }
        // SAFETY: long enough, and any bytes are a valid value of these integers.
        let news: artis_news = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == news.kind)?;
        Some(Self {
            pid: news.pid.cast_signed(),
            tgid: news.tgid.cast_signed(),
            kind,
            all_threads: news.all_threads != 0,
            comm: CStr::from_bytes_until_nul(&news.comm.map(i8::cast_unsigned))
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            asked: (kind == Kind::Policy).then(|| Asked {
                policy: u32::try_from(news.policy).ok(),
                priority: news.priority,
                nice: news.nice,
                reset_on_fork: news.reset_on_fork != 0,
            }),
        })
    }
}

/// What exists while somebody wants news.
pub(super) struct Herald {
    ring: RingBuffer<'static>,
    taken: Rc<RefCell<Vec<Item>>>,
    told: Receiver<()>,
    /// Ends the thread that listens.
    _alive: OwnedFd,
    /// What has to be attached for it.
    _links: Vec<Link>,
    lost: u32,
}

impl Informed for Scheduler<'_> {
    fn want_news(&mut self, kinds: &[Kind]) -> Result<()> {
        self.news_words()?.0.store(0, Ordering::Relaxed);
        self.herald = None;
        if kinds.is_empty() {
            return Ok(());
        }
        let progs = &self.skel.progs;
        let mut links = Vec::new();
        for (program, of) in [
            (&progs.artis_news_fork, &[Kind::Fork, Kind::ForkRt][..]),
            (&progs.artis_news_exec, &[Kind::Exec]),
            (&progs.artis_news_name, &[Kind::Name]),
            (&progs.artis_news_cgroup, &[Kind::Cgroup]),
        ] {
            if kinds.iter().any(|kind| of.contains(kind)) {
                let link = program.attach();
                links.push(link.with_context(|| format!("attaching {:?}", program.name()))?);
            }
        }
        for (program, kind) in
            [(&progs.artis_news_policy, Kind::Policy), (&progs.artis_news_affinity, Kind::Affinity)]
        {
            if kinds.contains(&kind) {
                // a kernel that cannot trace its functions: said, and lived with
                match program.attach() {
                    Ok(link) => links.push(link),
                    Err(error) => log::warn!(
                        "this kernel does not tell when a program changes {kind:?} of a real-time \
                         task ({error}): that is noticed at other news of it only, see \
                         docs/adoption.md"
                    ),
                }
            }
        }
        let taken = Rc::new(RefCell::new(Vec::new()));
        let to = Rc::clone(&taken);
        let mut ring = RingBufferBuilder::new();
        ring.add(&self.skel.maps.news, move |bytes| {
            to.borrow_mut().extend(Item::of(bytes));
            0
        })?;
        let ring = ring.build().context("mapping the ring buffer of news")?;
        let (told, alive) = listen(&ring)?;
        let (wanted, lost) = self.news_words()?;
        let lost = lost.load(Ordering::Relaxed);
        wanted.store(kinds.iter().fold(0, |bits, kind| bits | *kind as u32), Ordering::Release);
        self.herald = Some(Herald { ring, taken, told, _alive: alive, _links: links, lost });
        Ok(())
    }

    fn take_news(&mut self) -> Result<(Vec<Item>, bool)> {
        let lost = self.news_words()?.1.load(Ordering::Relaxed);
        let Some(herald) = &mut self.herald else { return Ok((Vec::new(), false)) };
        // those that are left are told again
        let taken = herald.ring.consume_raw_n(AT_ONCE);
        let error = std::io::Error::from_raw_os_error(taken.saturating_neg());
        ensure!(taken >= 0, "reading the ring buffer of news: {error}");
        let missed = std::mem::replace(&mut herald.lost, lost) != lost;
        Ok((herald.taken.take(), missed))
    }
}

impl Scheduler<'_> {
    /// Gets a message when there are news; never, while nobody wants them.
    pub fn news(&self) -> Receiver<()> {
        self.herald.as_ref().map_or_else(never, |herald| herald.told.clone())
    }

    /// What is wanted, and how many were lost.
    fn news_words(&mut self) -> Result<(&AtomicU32, &AtomicU32)> {
        let data = self.skel.maps.data_watch_data.as_mut();
        let data = data.context("the BPF object tells no news")?;
        // SAFETY: aligned, and valid for as long as the exclusive borrow of `data`; BPF reads
        // and writes them meanwhile.
        Ok(unsafe {
            (AtomicU32::from_ptr(&mut data.news_wanted), AtomicU32::from_ptr(&mut data.news_lost))
        })
    }
}

/// Starts a thread that waits for news: a message means that there are some. It ends when the
/// second value is dropped.
fn listen(ring: &RingBuffer<'_>) -> Result<(Receiver<()>, OwnedFd)> {
    // SAFETY: the ring buffer's descriptor is open as long as the ring is borrowed; the copy is ours.
    let ring = unsafe { BorrowedFd::borrow_raw(ring.epoll_fd()) }.try_clone_to_owned()?;
    let (ends, alive) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (tell, told) = bounded(0);
    std::thread::Builder::new().name("news".into()).spawn(move || {
        let mut polled =
            [PollFd::new(&ring, PollFlags::IN), PollFd::new(&ends, PollFlags::empty())];
        loop {
            match poll(&mut polled, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return log::error!("waiting for news of tasks: {error}"),
            }
            if !polled[1].revents().is_empty() || tell.send(()).is_err() {
                return;
            }
        }
    })?;
    Ok((told, alive))
}
