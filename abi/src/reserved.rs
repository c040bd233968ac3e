//! Words the kernel keeps for later.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `N` bytes that a structure reserves.
///
/// Zero is the only value a program can name, as the kernel demands of
/// requests. In a response the kernel may one day give them a meaning.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(transparent)]
pub struct Reserved<const N: usize>([u8; N]);

impl<const N: usize> Reserved<N> {
    /// The only value a request may carry.
    pub const ZERO: Self = Self([0; N]);
}

impl<const N: usize> Default for Reserved<N> {
    fn default() -> Self {
        Self::ZERO
    }
}
