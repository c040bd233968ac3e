//! Room for an address of any family.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{AddressFamily, SockaddrIb, SockaddrIn, SockaddrIn6};

/// `struct __kernel_sockaddr_storage`: 128 bytes that hold an address of any
/// family, zeros after it.
#[doc(alias = "__kernel_sockaddr_storage", alias = "sockaddr_storage")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(8))]
pub struct SockaddrStorage {
    pub(crate) family: AddressFamily,
    pub(crate) data: [u8; 126],
}

impl SockaddrStorage {
    /// No address.
    pub const ZERO: Self = Self {
        family: AddressFamily::UNSPEC,
        data: [0; 126],
    };

    /// Bytes the address takes: those of its family, 0 if that is unknown.
    #[must_use]
    pub const fn size(&self) -> u16 {
        match self.family {
            AddressFamily::INET => 16,
            AddressFamily::INET6 => 28,
            AddressFamily::IB => 48,
            _ => 0,
        }
    }

    /// The address family; 0 for no address.
    #[must_use]
    pub const fn family(&self) -> AddressFamily {
        self.family
    }

    /// The address, if it is an IPv4 one.
    #[must_use]
    pub fn as_in(&self) -> Option<SockaddrIn> {
        read(AddressFamily::INET, self.family, self.as_bytes())
    }

    /// The address, if it is an IPv6 one.
    #[must_use]
    pub fn as_in6(&self) -> Option<SockaddrIn6> {
        read(AddressFamily::INET6, self.family, self.as_bytes())
    }

    /// The address, if it is a native InfiniBand one.
    #[must_use]
    pub fn as_ib(&self) -> Option<SockaddrIb> {
        read(AddressFamily::IB, self.family, self.as_bytes())
    }
}

/// A `struct sockaddr_in6` of the IP commands: 28 bytes that hold an IPv6
/// address, or an IPv4 one and zeros after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C, align(4))]
pub struct IpSlot {
    family: AddressFamily,
    data: [u8; 26],
}

impl IpSlot {
    /// No address.
    pub const ZERO: Self = Self {
        family: AddressFamily::UNSPEC,
        data: [0; 26],
    };

    /// The address family; 0 for no address.
    #[must_use]
    pub const fn family(&self) -> AddressFamily {
        self.family
    }

    /// The address, if it is an IPv4 one.
    #[must_use]
    pub fn as_in(&self) -> Option<SockaddrIn> {
        read(AddressFamily::INET, self.family, self.as_bytes())
    }

    /// The address, if it is an IPv6 one.
    #[must_use]
    pub fn as_in6(&self) -> Option<SockaddrIn6> {
        read(AddressFamily::INET6, self.family, self.as_bytes())
    }
}

fn read<A: FromBytes>(wanted: AddressFamily, found: AddressFamily, bytes: &[u8]) -> Option<A> {
    let (address, _rest) = A::read_from_prefix(bytes).ok()?;
    (wanted == found).then_some(address)
}

macro_rules! slot_from {
    ($($slot:ident: $address:ident,)+) => {$(
        impl From<$address> for $slot {
            fn from(address: $address) -> Self {
                let mut slot = Self::ZERO;
                let bytes = address.as_bytes();
                slot.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
                slot
            }
        }
    )+};
}

slot_from! {
    SockaddrStorage: SockaddrIn,
    SockaddrStorage: SockaddrIn6,
    SockaddrStorage: SockaddrIb,
    IpSlot: SockaddrIn,
    IpSlot: SockaddrIn6,
}
