//! Multicast groups of datagram queue pairs.

use rdmacm_abi::uverbs::AttachMulticast;
use rdmacm_core::Gid;

use super::QueuePair;
use crate::error::{Error, Result};
use crate::operation::Operation;

impl QueuePair {
    /// Attaches it to a multicast group: it receives the group's datagrams from now on. A
    /// [`MulticastGroup`](rdmacm_core::MulticastGroup) of the connection manager has its GID
    /// and LID; the LID is in host order, and 0 on RoCE. Source: `ibv_attach_mcast(3)`.
    ///
    /// # Errors
    /// [`Error::Command`] if the kernel refuses, with `EINVAL` for a queue pair that is not of
    /// type UD or an address that is not a multicast group's.
    #[doc(alias = "ibv_attach_mcast")]
    pub fn attach(&self, gid: Gid, lid: u16) -> Result<()> {
        let uverbs = self.context().uverbs();
        uverbs.attach(self.multicast_operation(), &self.group(gid, lid))
    }

    /// Detaches it from a multicast group; the LID is in host order.
    /// Source: `ibv_detach_mcast(3)`.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a group it is not attached to;
    /// [`Error::Command`] if the kernel refuses.
    #[doc(alias = "ibv_detach_mcast")]
    pub fn detach(&self, gid: Gid, lid: u16) -> Result<()> {
        let operation = self.multicast_operation();
        let uverbs = self.context().uverbs();
        let detached = uverbs.detach(operation, &self.group(gid, lid))?;
        detached.ok_or_else(|| Error::invalid(operation, "it is not attached to this group"))
    }

    fn multicast_operation(&self) -> Operation {
        let number = self.number;
        Operation::Multicast { number }
    }

    fn group(&self, gid: Gid, lid: u16) -> AttachMulticast {
        AttachMulticast {
            lid,
            ..AttachMulticast::new(self.handle, gid.0)
        }
    }
}
