// SPDX-License-Identifier: GPL-2.0-only
//! Memory that a task walks through, so that a migration costs what it costs real tasks.

use anyhow::{Context, Result};

/// A cache line of most machines.
const LINE_BYTES: usize = 64;

/// One word in each cache line is changed by a walk.
pub(super) struct Memory(Vec<u64>);

impl Memory {
    /// Touched from the begin.
    pub fn of_kb(kb: u64) -> Result<Self> {
        let bytes = usize::try_from(kb.saturating_mul(1024)).unwrap_or(usize::MAX);
        let mut words = Vec::new();
        words.try_reserve_exact(bytes / size_of::<u64>()).with_context(|| {
            format!("no memory of {kb} KiB for the task to walk through; give its group less")
        })?;
        words.resize(bytes / size_of::<u64>(), 1);
        Ok(Self(words))
    }

    /// Reads and writes a word of each line.
    pub fn walk(&mut self) {
        for word in self.0.iter_mut().step_by(LINE_BYTES / size_of::<u64>()) {
            *word = word.wrapping_add(1);
        }
        std::hint::black_box(&mut self.0);
    }
}
