//! Handles to ids, and their commands.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Weak;

use rdmacm_abi::{IpSlot, PortSpace, QpType};

use crate::address::{CmAddr, to_ip_slot};
use crate::error::{Error, Result};
use crate::id_state::{IdState, InFlight};
use crate::operation::Operation;
use crate::token::Token;

mod bind;
mod connect;
mod listen;
mod options;
mod qp_attr;
mod query;
mod resolve;
mod route;
mod service;
mod write_event;

/// A handle to an id, with all of its commands. It keeps neither the id nor its
/// channel alive: once the owner has dropped the [`CmId`](crate::CmId), every
/// command returns [`Error::IdDestroyed`]. Events carry handles.
///
/// Each command is one command of the kernel, unless it says otherwise. `resolve_addr`,
/// `resolve_route`, `set_ib_path`, `resolve_ib_service`, `connect` and `join_multicast` begin
/// something that ends with an event.
///
/// Handles are equal if they name the same id, and hash accordingly, so an event
/// loop can use them as keys of a map. An id is never equal to another id of the
/// process, not even to one that is gone.
#[derive(Clone)]
#[doc(alias = "rdma_cm_id")]
pub struct IdHandle {
    token: Token,
    port_space: PortSpace,
    qp_type: QpType,
    state: Weak<IdState>,
}

impl IdHandle {
    /// The handle to an id that is about to be created.
    pub(crate) fn new(state: Weak<IdState>, port_space: PortSpace, qp_type: QpType) -> Self {
        Self {
            token: Token::new(),
            port_space,
            qp_type,
            state,
        }
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn state(&self) -> &Weak<IdState> {
        &self.state
    }

    /// The port space the id was created in.
    #[must_use]
    pub fn port_space(&self) -> PortSpace {
        self.port_space
    }

    /// The type of queue pair the id is for.
    #[must_use]
    pub fn qp_type(&self) -> QpType {
        self.qp_type
    }

    /// Whether the owner has dropped the id.
    #[must_use]
    pub fn is_destroyed(&self) -> bool {
        !self.state.upgrade().is_some_and(|state| state.is_open())
    }

    /// Begins a command; the id is not destroyed before the result is dropped.
    #[inline]
    pub(crate) fn enter(&self) -> Result<InFlight> {
        match self.state.upgrade().and_then(IdState::enter) {
            Some(id) => Ok(id),
            None => Err(Error::IdDestroyed),
        }
    }
}

impl PartialEq for IdHandle {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
    }
}

impl Eq for IdHandle {}

impl Hash for IdHandle {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.token.hash(hasher);
    }
}

impl fmt::Debug for IdHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state.upgrade() {
            Some(state) => state.fmt(f),
            None => f.write_str("IdHandle(destroyed)"),
        }
    }
}

/// An address for the IP commands, which take no InfiniBand address.
pub(crate) fn ip_slot(operation: Operation, address: &CmAddr) -> Result<IpSlot> {
    let reason = "the IP commands know no InfiniBand addresses";
    to_ip_slot(address).ok_or_else(|| Error::invalid(operation, reason))
}
