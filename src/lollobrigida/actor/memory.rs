// SPDX-License-Identifier: GPL-2.0-only
//! Memory that a task walks through, so that a migration costs what it costs real tasks.

/// A cache line of most machines.
const LINE_BYTES: usize = 64;

/// One word in each cache line is changed by a walk.
pub(super) struct Memory(Vec<u64>);

impl Memory {
    /// Touched from the begin.
    pub fn of_kb(kb: u64) -> Self {
        let words =
            usize::try_from(kb.saturating_mul(1024)).unwrap_or(usize::MAX) / size_of::<u64>();
        Self(vec![1; words])
    }

    /// Reads and writes a word of each line.
    pub fn walk(&mut self) {
        for word in self.0.iter_mut().step_by(LINE_BYTES / size_of::<u64>()) {
            *word = word.wrapping_add(1);
        }
        std::hint::black_box(&mut self.0);
    }
}
