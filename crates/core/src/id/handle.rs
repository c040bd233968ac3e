//! Naming an id without owning it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use rdmacm_abi::{PortSpace, QpType};

use super::CmId;
use super::state::{IdState, InFlight};
use crate::error::{Error, Result};
use crate::token::Token;

/// Names an id without owning it: what events carry. It keeps neither the id
/// nor its channel alive; once the owner has dropped the id, every command
/// answers [`Error::IdGone`].
///
/// Commands are the kernel's own: `resolve_addr` and `resolve_route` begin
/// something whose end an event reports, all others are done when they return.
///
/// Handles are equal if they name the same id, and hash accordingly: an event
/// loop finds what belongs to an event in a map with handles for keys. No two
/// ids of a process are ever equal, whether they live or not.
#[derive(Clone)]
pub struct IdHandle {
    token: Token,
    port_space: PortSpace,
    qp_type: QpType,
    state: Weak<IdState>,
}

impl IdHandle {
    pub(crate) fn to(state: &Arc<IdState>) -> Self {
        Self {
            token: state.token(),
            port_space: state.port_space(),
            qp_type: state.qp_type(),
            state: Arc::downgrade(state),
        }
    }

    /// The port space the id was made in.
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
    pub fn is_gone(&self) -> bool {
        !self.state.upgrade().is_some_and(|state| state.is_open())
    }

    /// Counts a command in, so that the id is not destroyed under it.
    pub(crate) fn enter(&self) -> Result<InFlight> {
        self.state
            .upgrade()
            .and_then(IdState::enter)
            .ok_or(Error::IdGone)
    }
}

impl PartialEq for IdHandle {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
    }
}

impl Eq for IdHandle {}

impl PartialEq<CmId> for IdHandle {
    fn eq(&self, other: &CmId) -> bool {
        *self == **other
    }
}

impl Hash for IdHandle {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.token.hash(hasher);
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
