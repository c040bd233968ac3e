//! Registered memory that a request takes and returns.

use rdmacm_verbs::{Buffer, Piece, Pieces};

/// Registered memory that a request takes and returns: a [`Buffer`], or a [`Piece`] of one
/// or of [`ExposedMemory`](rdmacm_verbs::ExposedMemory).
pub trait RegisteredBuffer: Into<Piece> + sealed::Sealed {
    /// The buffer that a piece was made from; `None` for other memory.
    #[doc(hidden)]
    fn from_piece(piece: Piece) -> Option<Self>;

    /// The buffer of a request that has one.
    #[doc(hidden)]
    fn from_pieces(pieces: Pieces) -> Option<Self> {
        pieces.into_iter().next().and_then(Self::from_piece)
    }
}

impl RegisteredBuffer for Buffer {
    fn from_piece(piece: Piece) -> Option<Self> {
        piece.into_buffer()
    }
}

impl RegisteredBuffer for Piece {
    fn from_piece(piece: Piece) -> Option<Self> {
        Some(piece)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Buffer {}
    impl Sealed for super::Piece {}
}
