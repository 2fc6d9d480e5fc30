// SPDX-License-Identifier: GPL-2.0-only
//! Words that this side and a running BPF program share.

/// Integers that are written in one piece.
pub trait Word: Copy {}
impl Word for u32 {}
impl Word for u64 {}

/// Sets a word of a map that a program reads at any time.
pub fn set<T: Word>(word: &mut T, value: T) {
    // SAFETY: a valid, aligned integer of ours; volatile, since somebody else looks at it
    unsafe { std::ptr::from_mut(word).write_volatile(value) };
}
