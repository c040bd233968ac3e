//! Multicast groups.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rdmacm_abi::{DestroyIdResponse, LeaveMulticast};
use zerocopy::FromZeros;

use crate::address::CmAddr;
use crate::error::Result;
use crate::event::Event;
use crate::id::{IdHandle, InFlight};
use crate::operation::Operation;
use crate::token::Token;
use crate::ucma::Attachment;

/// A membership in a multicast group, left when dropped.
///
/// It is good as long as its id, and does not keep it: dropping the id leaves
/// its groups. A [`MulticastJoin`](crate::EventKind::MulticastJoin) event of the
/// id brings what a queue pair needs to be attached and to send
/// ([`UdInfo`](crate::UdInfo)).
#[doc(alias = "rdma_leave_multicast")]
pub struct MulticastGroup {
    id: IdHandle,
    membership: Arc<Membership>,
}

impl MulticastGroup {
    pub(crate) fn new(id: IdHandle, membership: Arc<Membership>) -> Self {
        Self { id, membership }
    }

    /// The group's address.
    #[must_use]
    pub fn address(&self) -> CmAddr {
        self.membership.address
    }

    /// The id that joined.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        &self.id
    }

    /// Whether the event is of this membership: an id may have several.
    #[must_use]
    pub fn concerns(&self, event: &Event) -> bool {
        event.group() == Some(self.membership.token)
    }

    /// Leaves the group, which dropping does as well, and says whether the
    /// kernel agreed. Events of it that are still queued are dropped.
    ///
    /// # Errors
    /// [`Error::IdGone`](crate::Error::IdGone) where the id's owner was faster.
    pub fn leave(self) -> Result<()> {
        self.id.enter()?.leave(&self.membership)
    }
}

impl Drop for MulticastGroup {
    fn drop(&mut self) {
        // With its id gone, the number may be another group's already: then
        // the kernel must not be asked.
        if let Ok(id) = self.id.enter() {
            let _ = id.leave(&self.membership);
        }
    }
}

impl fmt::Debug for MulticastGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MulticastGroup")
            .field("address", &self.membership.address)
            .field("id", &self.id)
            .finish()
    }
}

/// No group has this number.
const UNJOINED: u32 = u32::MAX;

/// What an id knows about a group it joined.
#[derive(Debug)]
pub(crate) struct Membership {
    token: Token,
    address: CmAddr,
    number: AtomicU32,
    left: AtomicBool,
}

impl Membership {
    /// Of a group that is about to be joined.
    pub(crate) fn new(address: CmAddr) -> Arc<Self> {
        Arc::new(Self {
            token: Token::new(),
            address,
            number: AtomicU32::new(UNJOINED),
            left: AtomicBool::new(false),
        })
    }

    pub(crate) fn token(&self) -> Token {
        self.token
    }

    pub(crate) fn address(&self) -> CmAddr {
        self.address
    }

    /// The kernel's number for it; none while it is being joined.
    pub(crate) fn joined(&self, number: u32) {
        self.number.store(number, Ordering::Release);
    }

    pub(crate) fn is_joined(&self) -> bool {
        self.number.load(Ordering::Acquire) != UNJOINED
    }
}

impl InFlight {
    /// Leaves a group, once.
    pub(crate) fn leave(&self, membership: &Arc<Membership>) -> Result<()> {
        if membership.left.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.remove_group(membership);
        let request = LeaveMulticast::new(membership.number.load(Ordering::Acquire));
        let mut events_reported = DestroyIdResponse::new_zeroed();
        let operation = Operation::LeaveMulticast(membership.address);
        self.send(operation, &request, &mut events_reported, Attachment::None)
    }
}
