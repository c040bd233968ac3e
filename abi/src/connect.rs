//! Connecting, accepting and disconnecting.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{ConnParam, Ece, Reserved};

/// `struct rdma_ucm_connect`: sends a connect request or, for a UD id, a SIDR
/// request.
#[doc(alias = "rdma_ucm_connect")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Connect {
    /// The parameters for the peer; must be valid.
    #[doc(alias = "conn_param")]
    pub param: ConnParam,
    /// The id.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// Vendor options. Kernels before 5.8 do not read this far.
    pub ece: Ece,
}

impl Connect {
    /// A request to connect `id`.
    #[must_use]
    pub const fn new(id: u32, param: ConnParam, ece: Ece) -> Self {
        Self {
            param,
            id,
            reserved: Reserved::ZERO,
            ece,
        }
    }
}

/// `struct rdma_ucm_accept`: accepts a connect request, or notifies the peer
/// that its response arrived.
#[doc(alias = "rdma_ucm_accept")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Accept {
    /// What events of the id carry from now on; taken only if `param` is
    /// valid.
    pub uid: u64,
    /// The parameters for the peer.
    #[doc(alias = "conn_param")]
    pub param: ConnParam,
    /// The id that came with the event.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// Vendor options. Kernels before 5.8 do not read this far.
    pub ece: Ece,
}

impl Accept {
    /// The passive side accepts the request of `id`.
    #[must_use]
    pub const fn new(uid: u64, id: u32, param: ConnParam, ece: Ece) -> Self {
        Self {
            uid,
            param,
            id,
            reserved: Reserved::ZERO,
            ece,
        }
    }

    /// The active side is ready to use its connection. InfiniBand and RoCE
    /// only; iWARP answers EINVAL.
    #[must_use]
    pub const fn ready_to_use(id: u32) -> Self {
        let ece = Ece {
            vendor_id: 0,
            options: 0,
        };
        Self::new(0, id, ConnParam::ZERO, ece)
    }
}

/// `struct rdma_ucm_disconnect`: ends a connection, or answers the peer that
/// ends it.
#[doc(alias = "rdma_ucm_disconnect")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Disconnect {
    /// The id.
    pub id: u32,
}

impl Disconnect {
    /// A request to disconnect `id`.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self { id }
    }
}
