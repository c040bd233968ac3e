//! Ids: what a connection, a listener or a datagram service is to the kernel.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_abi::{EventResponse, QpType};

use crate::channel::Shared;

mod bind;
mod connect;
mod handle;
mod listen;
mod migrate;
mod multicast;
mod options;
mod qp_attr;
mod query;
mod query_cache;
mod queue_pair;
mod resolution;
mod resolve;
mod service;
mod state;
mod write_event;

pub use connect::Notification;
pub use handle::IdHandle;
pub use query::{Addresses, Gids};
pub use queue_pair::WithQueuePair;
pub use resolution::PendingResolution;
pub(crate) use state::{Asked, IdState, InFlight};

/// The owner of an id. Its commands are those of [`IdHandle`], to which it
/// dereferences.
///
/// Dropping it destroys the id in the kernel. That cancels whatever the kernel
/// does for it (address resolution, a connection attempt), ends its connection
/// and waits for nobody to read events; events of it that are still queued are
/// dropped. A command of another thread that is still in the kernel finishes
/// first, and the id is destroyed as it returns. The kernel itself takes up to
/// 10 s to destroy an iWARP id whose MPA handshake is under way.
#[doc(alias = "rdma_cm_id")]
#[doc(alias = "rdma_destroy_id")]
pub struct CmId {
    state: Arc<IdState>,
    handle: IdHandle,
}

impl CmId {
    /// An id the kernel has just made for `state`.
    pub(crate) fn born(state: Arc<IdState>, kernel_id: u32) -> Self {
        state.set_kernel_id(kernel_id);
        let handle = IdHandle::to(&state);
        Self { state, handle }
    }

    /// The id that came with a connect request; its kind is its listener's.
    pub(crate) fn adopt(
        channel: &Arc<Shared>,
        listener: &IdState,
        request: &EventResponse,
    ) -> Self {
        let (port_space, qp_type) = (listener.port_space(), listener.qp_type());
        let asked = (qp_type != QpType::UD).then(|| Asked {
            depths: request.param.conn().into(),
            ece: request.ece,
        });
        let state = IdState::unborn(channel, port_space, qp_type, asked);
        Self::born(state, request.id)
    }

    /// A handle for others to use while this owner lives.
    #[must_use]
    pub fn handle(&self) -> IdHandle {
        self.handle.clone()
    }
}

impl Deref for CmId {
    type Target = IdHandle;

    fn deref(&self) -> &IdHandle {
        &self.handle
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        self.state.close();
    }
}

impl fmt::Debug for CmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}
