//! Notifications from queue pairs.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::uverbs::AsyncEventKind;

/// `struct rdma_ucm_notify`: reports an asynchronous event of the queue
/// pair.
#[doc(alias = "rdma_ucm_notify")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Notify {
    /// The id.
    pub id: u32,
    /// The verbs event; [`COMM_EST`](Self::COMM_EST) and
    /// [`PATH_MIG`](Self::PATH_MIG) are valid, others are EINVAL.
    pub event: u32,
}

impl Notify {
    /// Data arrived before the peer's "ready to use" did.
    #[doc(alias = "IBV_EVENT_COMM_EST")]
    pub const COMM_EST: u32 = AsyncEventKind::COMM_EST.number();
    /// The connection moved to its alternate path.
    #[doc(alias = "IBV_EVENT_PATH_MIG")]
    pub const PATH_MIG: u32 = AsyncEventKind::PATH_MIG.number();

    /// Reports `event` on the queue pair of `id`.
    #[must_use]
    pub const fn new(id: u32, event: u32) -> Self {
        Self { id, event }
    }
}
