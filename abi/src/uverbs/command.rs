//! Commands.
//!
//! # Safety
//!
//! A request makes the kernel write to memory, so the type that names that memory
//! must be trusted: [`Command`] is an unsafe trait. Nothing else here is unsafe.
#![expect(unsafe_code, reason = "declares the trait whose implementers prove it")]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::CommandNumber;
use crate::Pointer;

mod proofs;

pub use proofs::MAX_REQUEST;

/// A request to a verbs device.
///
/// To issue one, write [`Header::of`](super::Header::of) and the request in
/// one `write(2)`, the pointer at [`POINTER`](Self::POINTER) filled in, to
/// memory of at least the response's size that is initialised.
///
/// # Safety
///
/// For a request of this type that is written under
/// [`NUMBER`](Self::NUMBER), on every kernel and whichever driver the device
/// has:
///
/// * The kernel reads no more than `size_of::<Self>()` bytes after the
///   header, and follows no pointer to read.
/// * With [`Pointer::Response`] it writes through the `u64` at that offset of
///   the request and nowhere else in user memory, and at most
///   `size_of::<Self::Response>()` bytes, from the pointer on.
/// * With [`Pointer::None`] it writes to no user memory.
/// * [`Pointer::OptionValue`] it never is.
/// * It takes no file descriptor from the request, unless the documentation
///   of a field says so.
/// * It lets the device touch no memory later on, unless the documentation of
///   a field says so.
///
/// The offset lies in the request, with space for the value.
///
/// Requests need not be `FromBytes`: of some commands not every request keeps
/// to this.
pub unsafe trait Command: IntoBytes + KnownLayout + Immutable + Copy {
    /// The command's number.
    const NUMBER: CommandNumber;

    /// The pointer in the request.
    const POINTER: Pointer = Pointer::None;

    /// What the kernel answers; [`NoResponse`](crate::NoResponse) if nothing.
    type Response: FromBytes + IntoBytes + KnownLayout + Immutable + Copy;
}
