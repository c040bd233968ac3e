//! Joining and leaving multicast groups.

use rdmacm_abi::{CommandNumber, CreateIdResponse, JoinFlags, JoinIpMulticast, JoinMulticast};
use zerocopy::FromZeros;

use super::IdHandle;
use super::state::InFlight;
use crate::address::{CmAddr, to_ip_slot, to_storage};
use crate::address_abi::AddressAbi;
use crate::error::{Error, Result};
use crate::multicast::{Membership, MulticastGroup};
use crate::operation::Operation;
use crate::ucma::Attachment;

impl IdHandle {
    /// Begins to join a multicast group; a
    /// [`MulticastJoin`](crate::EventKind::MulticastJoin) or
    /// [`MulticastError`](crate::EventKind::MulticastError) event of this id
    /// reports the end. The id must be for unreliable datagrams, attached to a
    /// device, and not further than a resolved address. Joining a group twice
    /// makes two memberships.
    ///
    /// Only a full member receives; [`JoinFlags::SEND_ONLY_FULL_MEMBER`] sends.
    /// On RoCE v2 the kernel joins IPv4 groups alone. A wildcard address (`0.0.0.0`,
    /// `::`, a zero MGID) asks InfiniBand's subnet administrator for a group of its
    /// choice, which the event's [`UdInfo`](crate::UdInfo) names.
    /// Source: `rdma_join_multicast(3)`, `rdma_join_multicast_ex(3)`, the
    /// kernel's `cma.c`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a send-only membership in [`AddressAbi::IpOnly`].
    /// [`Error::Command`]: `EINVAL` for an id of another kind or in another state,
    /// and for a wildcard address on RoCE, `ENOSYS` on iWARP, `ENOTSUPP` (524) for
    /// IPv6 groups on RoCE v2.
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
        // Registered before the kernel can report about it, which may be before
        // the command returns.
        id.state().add_group(&membership)?;
        match id.join(operation, &membership, flags) {
            Ok(number) => {
                membership.joined(number);
                Ok(MulticastGroup::new(self.clone(), membership))
            }
            Err(error) => {
                id.remove_group(&membership);
                Err(error)
            }
        }
    }

    /// Leaves the group with this address, the first joined of several. Which
    /// address is the same goes by its meaning: family, bytes and scope.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] where the id is not a member.
    #[doc(alias = "rdma_leave_multicast")]
    pub fn leave_multicast(&self, group: impl Into<CmAddr>) -> Result<()> {
        let address = group.into();
        let id = self.enter()?;
        let membership = id
            .groups()
            .iter()
            .filter(|membership| membership.is_joined())
            .find(|membership| membership.address().is_same_host(&address))
            .cloned();
        let Some(membership) = membership else {
            let operation = Operation::LeaveMulticast(address);
            return Err(Error::invalid(operation, "the id is not a member"));
        };
        id.leave(&membership)
    }
}

impl InFlight {
    fn join(&self, operation: Operation, membership: &Membership, flags: JoinFlags) -> Result<u32> {
        let (uid, address) = (membership.token().uid(), membership.address());
        let mut answer = CreateIdResponse::new_zeroed();
        self.with_address_abi(|address_abi| match address_abi {
            AddressAbi::AnyFamily => {
                let address = to_storage(&address);
                let request = JoinMulticast::new(uid, self.kernel_id(), address, flags);
                self.send(operation, &request, &mut answer, Attachment::None)
            }
            AddressAbi::IpOnly if flags != JoinFlags::FULL_MEMBER => {
                Err(Error::unsupported(CommandNumber::JOIN_MCAST))
            }
            AddressAbi::IpOnly => {
                let address = to_ip_slot(operation, &address)?;
                let request = JoinIpMulticast::new(uid, self.kernel_id(), address);
                self.send(operation, &request, &mut answer, Attachment::None)
            }
        })?;
        Ok(answer.id)
    }
}
