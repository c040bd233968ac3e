//! Ids and their owners.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_abi::{EventResponse, QpType};

use crate::id_handle::IdHandle;
use crate::id_state::{Channel, IdState, RequestParams};

/// An id: a connection, a listener or a datagram service of the kernel's connection
/// manager. It owns the id and dereferences to [`IdHandle`], which has the commands.
///
/// Dropping it destroys the id in the kernel. That cancels address resolution and
/// connection attempts, ends the connection, and drops the id's unread events; it
/// does not wait for readers of events. If another thread is in a command of the
/// id, the id is destroyed when that command returns. The kernel takes up to 10 s to
/// destroy an iWARP id during its MPA handshake, and up to 2 s to destroy one that
/// [queries the subnet administrator](IdHandle::resolve_ib_service).
///
/// It is equal to its handles and hashes like them, and can be the key of a map that
/// is searched by handle.
#[doc(alias = "rdma_cm_id")]
#[doc(alias = "rdma_destroy_id")]
#[must_use = "dropping it destroys the id"]
pub struct CmId(Arc<IdState>);

impl CmId {
    /// The owner of an id that the kernel has just created.
    pub(crate) fn new(state: Arc<IdState>, kernel_id: u32) -> Self {
        state.set_kernel_id(kernel_id);
        Self(state)
    }

    /// The owner of the id that a connect request brought. Its type is that of its
    /// listener.
    pub(crate) fn from_request(
        channel: &Arc<Channel>,
        listener: &IdState,
        event: &EventResponse,
    ) -> Self {
        let listener = listener.handle();
        let (port_space, qp_type) = (listener.port_space(), listener.qp_type());
        let params = RequestParams {
            depths: (qp_type != QpType::UD).then(|| event.param.conn().into()),
            ece: event.ece,
        };
        let state = IdState::register_new(channel, port_space, qp_type, Some(params));
        Self::new(state, event.id)
    }

    /// A handle, which stays valid until this owner is dropped.
    #[must_use]
    pub fn handle(&self) -> IdHandle {
        self.0.handle().clone()
    }
}

impl Deref for CmId {
    type Target = IdHandle;

    fn deref(&self) -> &IdHandle {
        self.0.handle()
    }
}

impl Borrow<IdHandle> for CmId {
    fn borrow(&self) -> &IdHandle {
        self.0.handle()
    }
}

impl PartialEq for CmId {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for CmId {}

impl Hash for CmId {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (**self).hash(hasher);
    }
}

impl PartialEq<IdHandle> for CmId {
    fn eq(&self, other: &IdHandle) -> bool {
        **self == *other
    }
}

impl PartialEq<CmId> for IdHandle {
    fn eq(&self, other: &CmId) -> bool {
        *self == **other
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for CmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
