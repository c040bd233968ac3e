//! Bytes that nobody can foretell.
//!
//! # Safety
//! One of the modules with `unsafe`: the kernel fills memory by its address.
#![expect(unsafe_code, reason = "the kernel writes to memory")]

use std::io;

/// One byte of the kernel's generator, which every process and every start of it
/// finds in another state.
pub(crate) fn byte() -> io::Result<u8> {
    let mut byte = 0_u8;
    loop {
        // SAFETY: the place is one byte of this function's, and the length is one.
        match unsafe { libc::getrandom((&raw mut byte).cast(), 1, 0) } {
            1 => return Ok(byte),
            _ => match io::Error::last_os_error() {
                // Early in a start of the machine it waits.
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}
