//! Commands.
//!
//! # Safety
//!
//! A request makes the kernel write to memory, so the type that names that memory
//! must be trusted: [`Command`] is an unsafe trait. Nothing else here is unsafe.
#![expect(unsafe_code, reason = "declares the trait whose implementers prove it")]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::CommandNumber;

mod proofs;

/// A request of the kernel's.
///
/// To issue one, write [`Header::of`](crate::Header::of) and the request in
/// one `write(2)`, the pointer at [`POINTER`](Self::POINTER) and the
/// descriptor at [`FD`](Self::FD) filled in, to memory of at least the
/// response's size that is initialised: kernels write a prefix of it, of
/// [`MIN_RESPONSE`](Self::MIN_RESPONSE) bytes or more.
///
/// # Safety
///
/// For a request of this type that is written under
/// [`NUMBER`](Self::NUMBER), on every kernel:
///
/// * The kernel reads no more than `size_of::<Self>()` bytes after the
///   header.
/// * With [`Pointer::Response`] it writes through the `u64` at that offset of
///   the request and nowhere else in user memory, and at most
///   `size_of::<Self::Response>()` bytes, from the pointer on.
/// * With [`Pointer::OptionValue`] it reads through the `u64` at that offset,
///   at most as many bytes as the `u32` at the other offset says, and writes
///   to no user memory.
/// * With [`Pointer::None`] it does neither.
/// * It takes a file descriptor from nowhere but the `u32` at
///   [`FD`](Self::FD).
///
/// The offsets lie in the request, with space for the value.
pub unsafe trait Command: FromBytes + IntoBytes + KnownLayout + Immutable + Copy {
    /// The command's number.
    const NUMBER: CommandNumber;

    /// Bytes of the response that every kernel with the command writes. What
    /// follows them an older kernel may leave as it was.
    const MIN_RESPONSE: usize = size_of::<Self::Response>();

    /// The pointer in the request.
    const POINTER: Pointer = Pointer::None;

    /// The offset in the request of a file descriptor, a `u32`.
    const FD: Option<usize> = None;

    /// What the kernel answers; [`NoResponse`] if nothing.
    type Response: FromBytes + IntoBytes + KnownLayout + Immutable + Copy;
}

/// The pointer that a request holds, if any. Offsets are in bytes from the
/// request's start, the header not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// None.
    None,
    /// To where the kernel writes the response.
    Response {
        /// Of the pointer, a `u64`.
        offset: usize,
    },
    /// To an option's value, which the kernel reads.
    OptionValue {
        /// Of the pointer, a `u64`.
        offset: usize,
        /// Of the value's size in bytes, a `u32`.
        size_offset: usize,
    },
}

/// The answer of a command that has none: no bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct NoResponse;
