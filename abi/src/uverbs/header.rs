//! The header of requests.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Command, CommandNumber};

/// Bytes of a word, in which sizes are counted.
const WORD: usize = 4;

/// `struct ib_uverbs_cmd_hdr`: the first 8 bytes of every `write(2)`.
#[doc(alias = "ib_uverbs_cmd_hdr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Header {
    /// Which command.
    pub command: CommandNumber,
    /// Words of 4 bytes of this header and the request. EINVAL unless that is
    /// what was written.
    #[doc(alias = "in_words")]
    pub request_words: u16,
    /// Words of 4 bytes the kernel may write where the request's response
    /// pointer points; fewer than the response takes is ENOSPC.
    #[doc(alias = "out_words")]
    pub response_words: u16,
}

impl Header {
    /// The header of a request of type `C` with space for its whole response.
    #[must_use]
    pub const fn of<C: Command>() -> Self {
        Self {
            command: C::NUMBER,
            request_words: const { words(size_of::<Self>() + size_of::<C>()) },
            response_words: const { words(size_of::<C::Response>()) },
        }
    }
}

/// Evaluated at compile time only: a size that a header cannot hold does not
/// compile.
const fn words(size: usize) -> u16 {
    assert!(size % WORD == 0, "a header counts whole words");
    let words = size / WORD;
    assert!(words <= u16::MAX as usize, "a header has 16 bits for words");
    #[expect(clippy::cast_possible_truncation, reason = "checked just above")]
    let words = words as u16;
    words
}
