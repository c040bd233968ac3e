//! InfiniBand services, by the subnet administrator.

use zerocopy::byteorder::big_endian;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{IB_SERVICE_NAME_SIZE, Reserved};

bits! {
    /// What of [`IbService`] to look for. Needs Linux 6.18 or newer.
    pub struct ServiceFlags(u32) in kernel "rdma/rdma_user_cm.h" {
        /// The service id.
        ID = 0x1 => "RDMA_USER_CM_IB_SERVICE_FLAG_ID" since (7, 2),
        /// The service name.
        NAME = 0x2 => "RDMA_USER_CM_IB_SERVICE_FLAG_NAME" since (7, 2),
    }
}

/// `struct rdma_ucm_ib_service`: a service to look for. Needs Linux
/// 6.18 or newer.
#[doc(alias = "rdma_ucm_ib_service")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct IbService {
    /// The service id, host order.
    pub service_id: u64,
    /// The name, zeros after it, at least one.
    pub service_name: [u8; IB_SERVICE_NAME_SIZE],
    /// Which of the two count.
    pub flags: ServiceFlags,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl IbService {
    /// The service with this id.
    #[must_use]
    pub const fn with_id(service_id: u64) -> Self {
        Self {
            service_id,
            service_name: [0; IB_SERVICE_NAME_SIZE],
            flags: ServiceFlags::ID,
            reserved: Reserved::ZERO,
        }
    }

    /// The service with this name, if it has at most 63 bytes and no zero
    /// among them.
    #[must_use]
    pub fn with_name(name: &[u8]) -> Option<Self> {
        if name.len() >= IB_SERVICE_NAME_SIZE || name.contains(&0) {
            return None;
        }
        let mut service_name = [0; IB_SERVICE_NAME_SIZE];
        service_name[..name.len()].copy_from_slice(name);
        Some(Self {
            service_id: 0,
            service_name,
            flags: ServiceFlags::NAME,
            reserved: Reserved::ZERO,
        })
    }
}

/// `struct rdma_ucm_resolve_ib_service`: looks for a service from a bound id.
/// Event `ADDRINFO_RESOLVED` or `ADDRINFO_ERROR` follows. InfiniBand only.
/// Needs Linux 6.18 or newer.
#[doc(alias = "rdma_ucm_resolve_ib_service")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ResolveIbService {
    /// The id.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// The service.
    #[doc(alias = "ibs")]
    pub service: IbService,
}

impl ResolveIbService {
    /// A request to look for `service` from `id`.
    #[must_use]
    pub const fn new(id: u32, service: IbService) -> Self {
        Self {
            id,
            reserved: Reserved::ZERO,
            service,
        }
    }
}

/// `struct ib_user_service_rec`: a service that was found (IBTA Vol 1
/// §15.2.5.14). Needs Linux 6.18 or newer.
///
/// Of alignment 1 here and 8 in C, as these stand only in arrays of their
/// own.
#[doc(alias = "ib_user_service_rec")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ServiceRecord {
    /// The service id.
    pub id: big_endian::U64,
    /// The GID of the port that offers it.
    pub gid: [u8; 16],
    /// The partition key.
    pub pkey: big_endian::U16,
    /// Zero.
    pub reserved: Reserved<2>,
    /// How long it is offered, in seconds; all ones is for ever.
    pub lease: big_endian::U32,
    /// The service's key.
    pub key: [u8; 16],
    /// The name, zeros after it.
    pub name: [u8; 64],
    /// The service's own data, as bytes.
    pub data_8: [u8; 16],
    /// The service's own data, as 16-bit numbers.
    pub data_16: [big_endian::U16; 8],
    /// The service's own data, as 32-bit numbers.
    pub data_32: [big_endian::U32; 4],
    /// The service's own data, as 64-bit numbers.
    pub data_64: [big_endian::U64; 2],
}
