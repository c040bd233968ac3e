//! Moving an id to another channel.

use std::sync::Arc;

use rdmacm_abi::{Command, MigrateId, MigrateIdResponse};
use zerocopy::FromZeros;

use super::CmId;
use super::state::IdState;
use crate::channel::{EventChannel, Shared};
use crate::device::{Attachment, transact};
use crate::error::{Error, Result};
use crate::operation::Operation;

impl CmId {
    /// Moves the id to another channel, with its unread events, which queue
    /// behind those that are there. Events already read stay with who read them.
    /// A thread that waits on the new channel sees them.
    ///
    /// Connect requests of a listener move with it. Their ids belong to the
    /// channel they came through, so each follows as its event is read; until
    /// then the old channel's file stays open. Multicast groups move as well.
    /// Source: `rdma_migrate_id(3)`, the kernel's `ucma_migrate_id`.
    ///
    /// # Errors
    /// [`Error::Command`] when the kernel refuses, `ENOENT` for a channel that
    /// is none of the kernel's. The id stays where it is then.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&self, to: &EventChannel) -> Result<()> {
        let id = self.enter()?;
        let to = to.shared();
        id.relocate(to, |from| {
            // Both before the kernel can report there.
            id.state().register(to);
            id.former().push(Arc::clone(from));
            let answer = move_over(id.kernel_id(), from, to);
            if answer.is_ok() {
                id.unregister(from);
                // The kernel wakes nobody for events that moved.
                to.device.look_again();
            } else {
                id.unregister(to);
                id.former().pop();
            }
            answer
        })
    }
}

impl IdState {
    /// Brings the child of a connect request to the channel on which its event
    /// was read, where it is not there already.
    pub(crate) fn follow(&self, child: u32, here: &Arc<Shared>) {
        let mut former = self.former();
        let been_here = former.iter().any(|channel| Arc::ptr_eq(channel, here));
        let moved = former
            .iter()
            .rev()
            .filter(|channel| !Arc::ptr_eq(channel, here))
            .any(|channel| move_over(child, channel, here).is_ok());
        if !moved && !been_here {
            // Requests queue in order: this one came through here for the first
            // time, so none is left of those that came through another channel.
            former.clear();
        }
    }
}

/// `MIGRATE_ID` is written to the new channel and names the old one.
fn move_over(kernel_id: u32, from: &Shared, to: &Shared) -> Result<()> {
    let mut events_reported = MigrateIdResponse::new_zeroed();
    let old = Attachment::OldChannel(from.device.as_ref());
    let request = MigrateId::new(kernel_id);
    transact(to.device.as_ref(), &request, &mut events_reported, old)
        .map_err(|error| Error::command(Operation::Migrate, MigrateId::NUMBER, &error))
}
