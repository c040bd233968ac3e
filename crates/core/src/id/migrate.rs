//! Moving an id to another channel.

use std::sync::Arc;

use rdmacm_abi::{Command, MigrateId, MigrateIdResponse};
use zerocopy::FromZeros;

use super::CmId;
use super::state::IdState;
use crate::channel::{EventChannel, Shared};
use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::ucma::{Attachment, transact};

impl CmId {
    /// Moves the id to another channel, with its unread events, which queue
    /// behind those that are there. Events already read stay with who read them.
    /// A thread that waits on the new channel sees them.
    ///
    /// Connect requests of a listener move with it. Their ids belong to the
    /// channel they came through, so each follows as its event is read; the files
    /// of the channels a listener was on stay open as long as it lives. Multicast
    /// groups move as well.
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
            // Before the kernel can report there. On the old channel the id stays
            // known as well: an event may be on its way to a reader there.
            let known = id.knows(to);
            id.state().register(to);
            let answer = move_over(id.kernel_id(), from, to);
            if answer.is_ok() {
                from.hand_over(id.token(), to);
                // The kernel wakes nobody for events that moved.
                to.ucma.notify();
            } else if !known {
                id.unregister(to);
            }
            answer
        })
    }
}

impl IdState {
    /// Brings the child of a connect request to the channel on which its event
    /// was read, where it is not there already: which channel it came through
    /// nobody can tell, as readers may overtake each other.
    pub(crate) fn follow(&self, child: u32, here: &Arc<Shared>) {
        let sources = self.sources().clone();
        let elsewhere = sources.iter().filter(|one| !Arc::ptr_eq(one, here));
        for channel in elsewhere.rev() {
            if move_over(child, channel, here).is_ok() {
                return;
            }
        }
    }
}

/// `MIGRATE_ID` is written to the new channel and names the old one.
fn move_over(kernel_id: u32, from: &Shared, to: &Shared) -> Result<()> {
    let mut events_reported = MigrateIdResponse::new_zeroed();
    let old = Attachment::OldChannel(from.ucma.as_ref());
    let request = MigrateId::new(kernel_id);
    transact(to.ucma.as_ref(), &request, &mut events_reported, old)
        .map_err(|error| Error::command(Operation::Migrate, MigrateId::NUMBER, &error))
}
