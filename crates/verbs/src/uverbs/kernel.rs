//! Commands to the kernel.
//!
//! # Safety
//! One of the modules with `unsafe`: it writes addresses of this
//! process into commands, and the kernel writes through them; and it takes
//! over a descriptor that the kernel made.
#![expect(
    unsafe_code,
    reason = "a command holds an address the kernel writes to"
)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rdmacm_abi::uverbs::Command;

use super::frame::frame;

/// One `write(2)`: the kernel takes a command whole or not at all.
pub(super) fn transact<C: Command>(
    file: &File,
    request: &C,
    response: &mut C::Response,
) -> io::Result<()> {
    let frame = frame(request, response)?;
    let bytes = frame.bytes();
    // SAFETY:
    // - `bytes` is an initialised slice, so readable for its length.
    // - The kernel also follows the address in the frame. `frame` wrote it
    //   there, where the implementer of `Command` has proved that the kernel
    //   looks, and nowhere else; it is that of the response, which the frame
    //   borrows exclusively for longer than this call and whose size the
    //   frame states.
    let written = unsafe { libc::write(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    match usize::try_from(written) {
        Ok(written) if written == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Takes over a descriptor that the kernel has just made for an answer; `None`
/// for what is none.
pub(super) fn own(number: u32) -> Option<OwnedFd> {
    let fd = RawFd::try_from(number).ok()?;
    // SAFETY:
    // - The kernel opened this descriptor for the answer just read, and the
    //   number stands nowhere else: it is open, nobody else owns it, and
    //   closing it takes nothing but `close(2)`. Who answers `Provider::open`
    //   vouches that the answer is the kernel's.
    // - It is not -1: that is no `u32`.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}
