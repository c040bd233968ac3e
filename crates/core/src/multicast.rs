//! Multicast groups.

use std::fmt;
use std::sync::Arc;

use rdmacm_abi::{
    CommandNumber, CreateIdResponse, DestroyIdResponse, JoinFlags, JoinIpMulticast, JoinMulticast,
    LeaveMulticast,
};
use zerocopy::FromZeros;

use crate::address::{CmAddr, to_storage};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::id_handle::{IdHandle, ip_slot};
use crate::id_state::{InFlight, Membership};
use crate::operation::Operation;
use crate::ucma::Attachment;

/// A membership in a multicast group. Dropping it leaves the group.
///
/// It does not keep its id alive: dropping the id leaves its groups. A
/// [`MulticastJoin`](crate::EventKind::MulticastJoin) event of the id carries what a
/// queue pair needs to attach to the group and to send ([`UdInfo`](crate::UdInfo)).
#[doc(alias = "rdma_leave_multicast")]
#[must_use = "dropping it leaves the group"]
pub struct MulticastGroup {
    id: IdHandle,
    membership: Arc<Membership>,
}

impl IdHandle {
    /// Begins to join a multicast group; ends with a
    /// [`MulticastJoin`](crate::EventKind::MulticastJoin) or
    /// [`MulticastError`](crate::EventKind::MulticastError) event of this id. The id
    /// must be for unreliable datagrams, bound to a device, and without a resolved
    /// route. An id has one membership of an address and port; others take other ids.
    ///
    /// Only a full member receives; [`JoinFlags::SEND_ONLY_FULL_MEMBER`] sends.
    /// On RoCE v2 the kernel joins only IPv4 groups. For a wildcard address
    /// (`0.0.0.0`, `::`, a zero MGID) InfiniBand's subnet administrator chooses the
    /// group, which the event's [`UdInfo`](crate::UdInfo) names.
    /// Source: `rdma_join_multicast(3)`, `rdma_join_multicast_ex(3)`, the
    /// kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the id has a membership with this address and port. librdmacm
    /// creates a second one; the kernel confuses the two, and may use the memory of one after it was
    /// freed. [`Error::Unsupported`] for a send-only membership with
    /// [`AddressAbi::IpOnly`](crate::AddressAbi::IpOnly), whose commands join full members only.
    /// [`Error::Command`]: `EINVAL` for an id of
    /// another type or in another state, and for a wildcard address on RoCE, `ENOSYS` on iWARP,
    /// `ENOTSUPP` (524) for IPv6 groups on RoCE v2.
    #[doc(alias = "rdma_join_multicast")]
    #[doc(alias = "rdma_join_multicast_ex")]
    pub fn join_multicast(
        &self,
        group: impl Into<CmAddr>,
        flags: JoinFlags,
    ) -> Result<MulticastGroup> {
        let address = group.into();
        let operation = Operation::JoinMulticast(address);
        let id = self.enter()?;
        let membership = Membership::new(address);
        // Before the command: the kernel may report the event before it returns.
        id.state().add_group(&membership)?;
        match id.join_group(operation, &membership, flags) {
            Ok(kernel_id) => {
                membership.set_kernel_id(kernel_id);
                Ok(MulticastGroup {
                    id: self.clone(),
                    membership,
                })
            }
            Err(error) => {
                id.remove_group(&membership);
                id.unregister_group(&membership);
                Err(error)
            }
        }
    }

    /// Leaves the group with this address. Compares family, address bytes and scope, so of
    /// memberships with different ports it leaves the one that joined first.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] if the id is not a member.
    #[doc(alias = "rdma_leave_multicast")]
    pub fn leave_multicast(&self, group: impl Into<CmAddr>) -> Result<()> {
        let address = group.into();
        let id = self.enter()?;
        let membership = id
            .groups()
            .iter()
            .filter(|membership| membership.is_member())
            // Marked here, so that each of several callers leaves another membership.
            .find(|membership| {
                membership.address().is_same_host(&address) && membership.mark_left()
            })
            .cloned();
        let Some(membership) = membership else {
            let operation = Operation::LeaveMulticast(address);
            return Err(Error::invalid(operation, "the id is not a member"));
        };
        id.leave_marked_group(&membership)
    }
}

impl MulticastGroup {
    /// The group's address.
    #[must_use]
    pub fn address(&self) -> CmAddr {
        self.membership.address()
    }

    /// The id that joined.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        &self.id
    }

    /// Whether the event is about this membership; an id may have several.
    #[must_use]
    pub fn concerns(&self, event: &Event) -> bool {
        event.group() == Some(self.membership.token())
    }

    /// Leaves the group as dropping does, and returns the kernel's error. The
    /// membership's unread events are dropped.
    ///
    /// # Errors
    /// [`Error::IdDestroyed`] if the owner of the id has dropped it.
    #[doc(alias = "rdma_leave_multicast")]
    pub fn leave(self) -> Result<()> {
        self.id.enter()?.leave_group(&self.membership)
    }
}

impl Drop for MulticastGroup {
    fn drop(&mut self) {
        // If the id is gone, the kernel may have reassigned the membership's number:
        // then no command is sent.
        if let Ok(id) = self.id.enter() {
            let _ = id.leave_group(&self.membership);
        }
    }
}

impl fmt::Debug for MulticastGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MulticastGroup")
            .field("address", &self.membership.address())
            .field("id", &self.id)
            .finish()
    }
}

impl InFlight {
    fn join_group(
        &self,
        operation: Operation,
        membership: &Membership,
        flags: JoinFlags,
    ) -> Result<u32> {
        let (uid, address) = (membership.token().uid(), membership.address());
        let join_any_family = || {
            let mut answer = CreateIdResponse::new_zeroed();
            let request = JoinMulticast::new(uid, self.kernel_id(), to_storage(&address), flags);
            self.send(|| operation, request, &mut answer, Attachment::None)?;
            Ok(answer.id)
        };
        let join_ip = || {
            if flags != JoinFlags::FULL_MEMBER {
                return Err(Error::unsupported(CommandNumber::JOIN_MCAST));
            }
            let mut answer = CreateIdResponse::new_zeroed();
            let request =
                JoinIpMulticast::new(uid, self.kernel_id(), ip_slot(operation, &address)?);
            self.send(|| operation, request, &mut answer, Attachment::None)?;
            Ok(answer.id)
        };
        self.with_address_abi(join_any_family, join_ip)
    }

    /// Leaves a group, unless somebody has.
    fn leave_group(&self, membership: &Arc<Membership>) -> Result<()> {
        if membership.mark_left() {
            self.leave_marked_group(membership)
        } else {
            Ok(())
        }
    }

    /// Leaves a group that this caller has marked as left.
    fn leave_marked_group(&self, membership: &Arc<Membership>) -> Result<()> {
        self.unregister_group(membership);
        let request = LeaveMulticast::new(membership.kernel_id());
        let mut events_reported = DestroyIdResponse::new_zeroed();
        let operation = Operation::LeaveMulticast(membership.address());
        self.send(
            || operation,
            request,
            &mut events_reported,
            Attachment::None,
        )?;
        // Only now: the kernel looks for the group by its address, which another membership may
        // have from here on.
        self.remove_group(membership);
        Ok(())
    }
}
