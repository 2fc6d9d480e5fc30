// SPDX-License-Identifier: GPL-2.0-only
//! Memory that the runner and its tasks share, inherited as a file: the plan, the words
//! that start and stop the run, the buffers between tasks, and the reports.
//!
//! The order: the runner makes the board, starts the tasks as its children, and waits until
//! all are ready; each is then asleep, and gets its policy, CPUs and cgroup from the runner
//! now (a FIFO task would else delay its neighbours' preparation). Then `start`. Who ends
//! stays asleep until `release`, so that the kernel's figures of all can be read; writes
//! its report after that, and exits.

mod layout;
mod link;
mod memory;
mod runner;
mod task;

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering::SeqCst;

use anyhow::{Context, Result, ensure};

use layout::{Header, Layout, REPORT_BYTES, Slot};
pub(super) use link::{LinkCalls, Receiver, Sender, Turn};
use memory::Memory;
pub use runner::{STOP_SIGNAL, Wait};

use super::clock::Clock;
use super::report::Report;
use crate::plan::Plan;

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum State {
    /// Not there yet, or preparing.
    Fresh = 0,
    /// About to wait for the start signal, or waiting: a counter of system calls that is
    /// enabled before the process sleeps sees the begin of that wait too.
    Ready = 1,
    /// In its measured part.
    Running = 2,
    /// Has ended its phases, or was stopped.
    Done = 3,
    /// Cannot go on; its report says why, and its process exits without a release.
    Failed = 4,
}

/// The board, from either side.
pub struct Board {
    memory: Memory,
    layout: Layout,
    plan: Plan,
    file: OwnedFd,
}

impl Board {
    /// Makes the board of a plan. The tasks must be children of the calling process, and
    /// are killed when the thread that started them ends: start them from one that lives
    /// as long as the run.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn create(plan: &Plan) -> Result<Self> {
        let text = serde_json::to_vec(plan).context("the plan cannot be written as JSON")?;
        let layout = Layout::of(plan);
        let (memory, file) = Memory::create(layout.plan + text.len())
            .context("no shared memory for the board of the run")?;
        memory.write(layout.plan, &text);
        let board = Self { memory, layout, plan: plan.clone(), file };
        let header = board.header();
        header.plan_bytes.store(text.len() as u64, SeqCst);
        header.runner.store(std::process::id(), SeqCst);
        board.choose(Clock::choose());
        header.magic.store(layout::MAGIC, SeqCst);
        Ok(board)
    }

    /// The board behind an inherited file.
    ///
    /// # Errors
    /// When the file is none, or one of another version.
    pub fn open(file: OwnedFd) -> Result<Self> {
        let memory = Memory::open(&file).context("the board cannot be mapped")?;
        let header_bytes = size_of::<Header>();
        ensure!(
            memory.len() >= header_bytes
                && memory.at::<Header>(0).magic.load(SeqCst) == layout::MAGIC,
            "the file is not a board of this version of lollobrigida: \
             a task is started by `lollobrigida run`, not by hand"
        );
        let plan_bytes = memory.at::<Header>(0).plan_bytes.load(SeqCst) as usize;
        let begin = memory.len().checked_sub(plan_bytes).context("the board is cut short")?;
        let plan: Plan = serde_json::from_slice(&memory.read(begin, plan_bytes))
            .context("the board's plan cannot be read")?;
        let layout = Layout::of(&plan);
        ensure!(layout.plan == begin, "the board's plan does not fit its size");
        Ok(Self { memory, layout, plan, file })
    }

    /// The file that tasks inherit; it has no close-on-exec.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The plan it was made of.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How far task `i` is.
    ///
    /// # Panics
    /// When there is no such task.
    #[must_use]
    pub fn state(&self, i: usize) -> State {
        match self.slot(i).state.load(SeqCst) {
            0 => State::Fresh,
            1 => State::Ready,
            2 => State::Running,
            3 => State::Done,
            _ => State::Failed,
        }
    }

    /// What task `i` told. There after its exit; `None` if it was killed.
    ///
    /// # Panics
    /// When there is no such task.
    #[must_use]
    pub fn report(&self, i: usize) -> Option<Report> {
        let bytes = self.slot(i).report_bytes.load(SeqCst) as usize;
        let text = self.memory.read(self.report_at(i), bytes.min(REPORT_BYTES));
        serde_json::from_slice(&text).ok()
    }

    fn header(&self) -> &Header {
        self.memory.at(0)
    }

    fn slot(&self, i: usize) -> &Slot {
        assert!(i < self.plan.tasks.len(), "task {i} of {}", self.plan.tasks.len());
        self.memory.at(self.layout.slots + i * size_of::<Slot>())
    }

    fn report_at(&self, i: usize) -> usize {
        self.layout.reports + i * REPORT_BYTES
    }
}
