//! Multicast groups of datagram queue pairs.

use std::sync::{MutexGuard, PoisonError};

use rdmacm_abi::uverbs::{AttachMulticast, DetachMulticast};
use rdmacm_core::Gid;

use super::QueuePair;
use crate::error::{Error, Result};
use crate::operation::Operation;

/// A multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    gid: Gid,
    lid: u16,
}

impl Group {
    fn leave(self, queue_pair: u32) -> DetachMulticast {
        DetachMulticast {
            lid: self.lid,
            ..DetachMulticast::new(queue_pair, self.gid.0)
        }
    }
}

impl QueuePair {
    /// Receives what is sent to a multicast group from now on. A
    /// [`MulticastGroup`](rdmacm_core::MulticastGroup) of the connection manager's
    /// says its GID and LID; on RoCE the LID is 0.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, with `EINVAL` for a queue pair
    /// that is not one of datagrams or an address that is no group's.
    #[doc(alias = "ibv_attach_mcast")]
    pub fn attach(&self, gid: Gid, lid: u16) -> Result<()> {
        let mut groups = self.groups();
        let number = self.number;
        let request = AttachMulticast {
            lid,
            ..AttachMulticast::new(self.handle, gid.0)
        };
        let uverbs = self.context().uverbs();
        uverbs.ask(Operation::Multicast { number }, &request)?;
        let group = Group { gid, lid };
        if !groups.contains(&group) {
            groups.push(group);
        }
        Ok(())
    }

    /// Receives it no more.
    ///
    /// # Errors
    /// [`Error::InvalidInput`] for a group it is not attached to;
    /// [`Error::Command`] when the kernel refuses.
    #[doc(alias = "ibv_detach_mcast")]
    pub fn detach(&self, gid: Gid, lid: u16) -> Result<()> {
        let mut groups = self.groups();
        let number = self.number;
        let operation = Operation::Multicast { number };
        let group = Group { gid, lid };
        let Some(place) = groups.iter().position(|one| *one == group) else {
            let reason = "it is not attached to this group";
            return Err(Error::invalid(operation, reason));
        };
        let request = group.leave(self.handle);
        self.context().uverbs().ask(operation, &request)?;
        groups.swap_remove(place);
        Ok(())
    }

    pub(super) fn leave_groups(&self) {
        for group in self.groups().drain(..) {
            let request = group.leave(self.handle);
            self.context().uverbs().destroy(&request);
        }
    }

    fn groups(&self) -> MutexGuard<'_, Vec<Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
