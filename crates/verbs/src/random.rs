//! Random bytes.
//!
//! # Safety
//! One of the modules with `unsafe`: the kernel fills memory by its address.
#![expect(unsafe_code, reason = "the kernel writes to memory")]

use std::io;

/// One byte of the kernel's random number generator.
pub(crate) fn byte() -> io::Result<u8> {
    let mut byte = 0_u8;
    loop {
        // SAFETY: the pointer is to a local variable of one byte, and the length is 1.
        match unsafe { libc::getrandom((&raw mut byte).cast(), 1, 0) } {
            1 => return Ok(byte),
            _ => match io::Error::last_os_error() {
                // It blocks early during boot, where a signal may interrupt it.
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
}
