//! Big-endian integers with the alignment of the C type.
//!
//! zerocopy's own byte-order types have no alignment, as records on the wire
//! want it; `__be32` inside a C structure has that of `__u32`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

macro_rules! big_endian {
    ($(#[doc = $doc:literal] $type:ident($int:ident) = $c_name:literal;)+) => {$(
        #[doc = $doc]
        #[doc(alias = $c_name)]
        #[derive(
            Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable,
        )]
        #[repr(transparent)]
        pub struct $type($int);

        impl $type {
            /// From a number in host order.
            #[must_use]
            pub const fn new(number: $int) -> Self {
                Self(number.to_be())
            }

            /// The number in host order.
            #[must_use]
            pub const fn get(self) -> $int {
                $int::from_be(self.0)
            }
        }

        /// The number in host order.
        impl core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Debug::fmt(&self.get(), f)
            }
        }

        impl From<$int> for $type {
            fn from(number: $int) -> Self {
                Self::new(number)
            }
        }

        impl From<$type> for $int {
            fn from(number: $type) -> Self {
                number.get()
            }
        }
    )+};
}

big_endian! {
    /// A big-endian `u16`, aligned as one.
    Be16(u16) = "__be16";
    /// A big-endian `u32`, aligned as one.
    Be32(u32) = "__be32";
    /// A big-endian `u64`, aligned as one.
    Be64(u64) = "__be64";
}
