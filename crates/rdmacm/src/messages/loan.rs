//! Memory that is lent to a queue pair.

use rdmacm_verbs::{Buffer, Piece, Pieces};

/// Registered memory that a request takes and gives back: a [`Buffer`], or a
/// [`Piece`] of one or of [`ExposedMemory`](rdmacm_verbs::ExposedMemory).
pub trait Loan: Into<Piece> + sealed::Sealed {
    /// As it was before it was lent; `None` for other memory.
    #[doc(hidden)]
    fn of(piece: Piece) -> Option<Self>;
}

impl Loan for Buffer {
    fn of(piece: Piece) -> Option<Self> {
        piece.into_buffer()
    }
}

impl Loan for Piece {
    fn of(piece: Piece) -> Option<Self> {
        Some(piece)
    }
}

/// What was lent, out of what came back.
pub(crate) fn returned<L: Loan>(pieces: Pieces) -> Option<L> {
    pieces.into_iter().next().and_then(L::of)
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::Piece {}
}
