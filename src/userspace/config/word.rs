// SPDX-License-Identifier: GPL-2.0-only
//! One word of the policy, written while BPF reads it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A field of `struct artis_policy` that a knob sets: one aligned word.
#[derive(Debug, PartialEq, Eq)]
pub enum Word<'a> {
    /// 32 bits.
    Half(&'a mut u32),
    /// 64 bits.
    Whole(&'a mut u64),
}

impl<'a> From<&'a mut u32> for Word<'a> {
    fn from(word: &'a mut u32) -> Self {
        Self::Half(word)
    }
}

impl<'a> From<&'a mut u64> for Word<'a> {
    fn from(word: &'a mut u64) -> Self {
        Self::Whole(word)
    }
}

impl Word<'_> {
    /// What is in it.
    pub fn load(self) -> u64 {
        match self {
            Self::Half(word) => (*word).into(),
            Self::Whole(word) => *word,
        }
    }

    /// Writes `value` at once: whoever reads the word meanwhile, through another mapping of
    /// the same memory, sees the old value or the new one.
    pub fn store(self, value: u64) {
        match self {
            Self::Half(word) => {
                // the bounds of each knob fit into its field: a test of knob.rs
                let value = u32::try_from(value).unwrap_or(u32::MAX);
                // SAFETY: aligned, and valid for as long as the exclusive borrow, which keeps
                // other accesses of this program away; BPF reads whole words.
                unsafe { AtomicU32::from_ptr(word) }.store(value, Ordering::Relaxed);
            }
            Self::Whole(word) => {
                // SAFETY: as above.
                unsafe { AtomicU64::from_ptr(word) }.store(value, Ordering::Relaxed);
            }
        }
    }
}
