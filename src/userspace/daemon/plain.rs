// SPDX-License-Identifier: GPL-2.0-only
//! Plain integers, and structs of them, that BPF and the daemon exchange, as bytes.

use std::ptr;

use anyhow::Result;
use libbpf_rs::{ProgramInput, ProgramMut};

/// An integer or a struct that BPF reads or writes.
///
/// # Safety
/// Integers only, without padding: any bytes are a valid value, and none is uninitialised.
pub unsafe trait Plain: Copy {
    /// The value of these bytes; `None`: there are fewer or more than it has.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let fits = bytes.len() == size_of::<Self>();
        // SAFETY: as many bytes as the struct has, of which any are valid (see the trait).
        // Unaligned, since a Vec<u8> is.
        fits.then(|| unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) })
    }

    /// Its bytes.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the slice covers exactly the bytes of `self`, which it borrows; none is
        // uninitialised, and any are a valid value (see the trait).
        unsafe {
            std::slice::from_raw_parts_mut(ptr::from_mut(self).cast::<u8>(), size_of::<Self>())
        }
    }
}

// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// Has the kernel run a program (BPF_PROG_RUN) that reads and writes `context`.
///
/// # Returns
/// What the program returns.
///
/// # Errors
/// When the kernel does not run it.
pub fn run_with<T: Plain>(program: &ProgramMut<'_>, context: &mut T) -> Result<i32> {
    let input = ProgramInput { context_in: Some(context.bytes_mut()), ..Default::default() };
    Ok(program.test_run(input)?.return_value.cast_signed())
}
