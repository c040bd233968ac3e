//! The header of requests.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Command, CommandNumber};

/// `struct rdma_ucm_cmd_hdr`: the first 8 bytes of every `write(2)`.
#[doc(alias = "rdma_ucm_cmd_hdr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Header {
    /// Which command.
    pub cmd: CommandNumber,
    /// Bytes of the request after this header.
    #[doc(alias = "in")]
    pub request_size: u16,
    /// Bytes the kernel may write where the request's response pointer points.
    #[doc(alias = "out")]
    pub response_size: u16,
}

impl Header {
    /// The header of a request of type `C` with space for its whole response.
    #[must_use]
    pub const fn of<C: Command>() -> Self {
        Self {
            cmd: C::NUMBER,
            request_size: const { wire_size(size_of::<C>()) },
            response_size: const { wire_size(size_of::<C::Response>()) },
        }
    }
}

/// Evaluated at compile time only: a size that a header cannot hold does not
/// compile.
const fn wire_size(size: usize) -> u16 {
    assert!(size <= u16::MAX as usize, "a header has 16 bits for a size");
    #[expect(clippy::cast_possible_truncation, reason = "checked just above")]
    let size = size as u16;
    size
}
