//! Reading without a copy.
//!
//! # Safety
//! One of the modules with `unsafe`: it hands out slices of memory that the peer's device can
//! write to.
#![expect(unsafe_code, reason = "memory that a peer can write to")]

use std::fmt;

use super::stream_halves::OwnedReadHalf;

by_mode! {
    /// Reads what has arrived where it lies, see [`OwnedReadHalf::in_place`].
    ///
    blocking {
        /// It is a [`BufRead`](std::io::BufRead).
    }
    awaited {
        /// With the feature `tokio` it is an `AsyncBufRead` of tokio, and with the feature
        /// `futures-io` one of futures.
    }
    pub struct InPlaceReader {
        pub(super) half: OwnedReadHalf,
    }
}

impl OwnedReadHalf {
    /// Reads without the copy that reading into a buffer takes: the reader hands out slices of
    /// the memory into which the peer writes. Their memory is free for the peer once they are
    /// consumed.
    ///
    /// For buffered reading with a copy, use [`BufReader`](std::io::BufReader).
    ///
    /// # Safety
    /// As long as the reader exists, the peer keeps to the protocol: it does not write to bytes
    /// that it has reported until they are consumed. Its device could do so at any time, and
    /// this side could not tell. This is for peers that are as trusted as the process itself.
    #[must_use]
    pub unsafe fn in_place(self) -> InPlaceReader {
        InPlaceReader { half: self }
    }
}

impl InPlaceReader {
    /// The half again. What was not consumed is read next.
    #[must_use]
    pub fn into_half(self) -> OwnedReadHalf {
        self.half
    }

    /// The bytes that have arrived, up to where they wrap around in the memory; none if none
    /// have.
    pub(super) fn received(&self) -> &[u8] {
        let (memory, range) = self.half.inner.received();
        // SAFETY:
        // - The peer does not write to bytes that were reported and not consumed, as whoever
        //   has made this reader has promised.
        // - This side writes to none of them, and to none of the words that they touch: the ring
        //   begins with a word. They are consumed only through an exclusive reference to this reader,
        //   which owns the half: nobody else reads the stream.
        unsafe { memory.bytes(range) }
    }

    /// The first bytes of those that were received are read.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.half.inner.consume(bytes);
    }
}

impl fmt::Debug for InPlaceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InPlaceReader").field(&self.half).finish()
    }
}
