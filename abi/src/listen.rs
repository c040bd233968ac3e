//! Listening for connect requests.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `struct rdma_ucm_listen`: starts to listen.
#[doc(alias = "rdma_ucm_listen")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Listen {
    /// The id; an unbound one is bound to 0.0.0.0 and a free port first.
    pub id: u32,
    /// How many requests may wait unread. 0 and numbers above
    /// `net.rdma_ucm.max_backlog` mean that maximum.
    pub backlog: u32,
}

impl Listen {
    /// A request to listen on `id`.
    #[must_use]
    pub const fn new(id: u32, backlog: u32) -> Self {
        Self { id, backlog }
    }
}
