//! Ids: what a connection, a listener or a datagram service is to the kernel.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use rdmacm_abi::{PortSpace, QpType};

use crate::channel::Shared;
use crate::error::{Error, Result};

mod bind;
mod kept;
mod listen;
mod options;
mod query;
mod resolve;
mod state;

pub use query::{Addresses, Gids};
pub(crate) use state::{IdState, InFlight};

/// The owner of an id. Its commands are those of [`IdHandle`], to which it
/// dereferences.
///
/// Dropping it destroys the id in the kernel. That cancels whatever the kernel
/// does for it (address resolution, a connection attempt), ends its connection
/// and waits for nobody's events; events of it that are still queued are
/// dropped. A command of another thread that is still in the kernel finishes
/// first, and the id is destroyed as it returns.
#[doc(alias = "rdma_cm_id")]
#[doc(alias = "rdma_destroy_id")]
pub struct CmId {
    state: Arc<IdState>,
    handle: IdHandle,
}

/// Names an id without owning it: what events carry. It keeps neither the id
/// nor its channel alive; once the owner has dropped the id, every command
/// answers [`Error::IdGone`].
///
/// Commands are the kernel's own: `resolve_addr` and `resolve_route` begin
/// something whose end an event reports, all others are done when they return.
#[derive(Clone)]
pub struct IdHandle {
    state: Weak<IdState>,
}

impl CmId {
    /// An id the kernel has just made for `state`.
    pub(crate) fn born(state: Arc<IdState>, kernel_id: u32) -> Self {
        state.set_kernel_id(kernel_id);
        let handle = IdHandle::to(&state);
        Self { state, handle }
    }

    /// The id that came with a connect request; its kind is its listener's.
    pub(crate) fn adopt(channel: &Arc<Shared>, listener: &IdState, kernel_id: u32) -> Self {
        let state = IdState::unborn(channel, listener.port_space(), listener.qp_type());
        Self::born(state, kernel_id)
    }

    /// A handle for others to use while this owner lives.
    #[must_use]
    pub fn handle(&self) -> IdHandle {
        self.handle.clone()
    }

    /// The port space the id was made in.
    #[must_use]
    pub fn port_space(&self) -> PortSpace {
        self.state.port_space()
    }

    /// The type of queue pair the id is for.
    #[must_use]
    pub fn qp_type(&self) -> QpType {
        self.state.qp_type()
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

impl IdHandle {
    pub(crate) fn to(state: &Arc<IdState>) -> Self {
        Self {
            state: Arc::downgrade(state),
        }
    }

    /// Whether both name the same id.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.state, &other.state)
    }

    /// Whether the owner has dropped the id.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        !self.state.upgrade().is_some_and(|state| state.is_open())
    }

    /// Counts a command in, so that the id is not destroyed under it.
    fn enter(&self) -> Result<InFlight> {
        self.state
            .upgrade()
            .and_then(IdState::enter)
            .ok_or(Error::IdGone)
    }
}

impl fmt::Debug for IdHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state.upgrade() {
            Some(state) => state.fmt(f),
            None => f.write_str("IdHandle(gone)"),
        }
    }
}
