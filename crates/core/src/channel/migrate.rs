//! Migrating an id to another channel.

use std::sync::Arc;

use rdmacm_abi::{Command, MigrateId, MigrateIdResponse};
use zerocopy::FromZeros;

use super::EventChannel;
use crate::error::{Error, Result};
use crate::id::CmId;
use crate::id_state::{Channel, IdState};
use crate::operation::Operation;
use crate::ucma::Attachment;

impl CmId {
    /// Migrates the id to another channel. Its unread events move too and queue
    /// after those of the new channel, where waiting threads see them; events that
    /// were read stay with their readers.
    ///
    /// The connect requests of a listener migrate with it. Their ids belong to the
    /// channel they came through, so each migrates when its event is read. The files
    /// of the channels a listener was on stay open until the listener is dropped.
    /// Multicast groups migrate as well. Blocks while another thread connects the id on iWARP.
    /// Source: `rdma_migrate_id(3)`, the kernel's `ucma_migrate_id`.
    ///
    /// # Errors
    /// [`Error::Command`] if the kernel refuses, with `ENOENT` if one of the channels
    /// is not on the kernel's file. The id then stays on its channel.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&self, to: &EventChannel) -> Result<()> {
        let id = self.enter()?;
        let kernel_id = id.kernel_id();
        let migrate = |from: &Channel, to: &Channel| migrate(kernel_id, from, to);
        id.state().relocate(&to.state, migrate)
    }
}

/// Migrates the child of a connect request to the channel on which its event was
/// read, if it is on another one. Tries every channel the listener was on: readers
/// may overtake each other, so the order of events does not say which it is. Returns the channel
/// that it stays on if it does not migrate, because its device is gone.
pub(super) fn migrate_child(
    listener: &IdState,
    child: u32,
    to: &Arc<Channel>,
) -> Option<Arc<Channel>> {
    for channel in listener.other_request_sources(to) {
        match migrate(child, &channel, to) {
            Ok(()) => break,
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Some(channel),
            // It is on another one.
            Err(_) => {}
        }
    }
    None
}

/// `MIGRATE_ID` is sent to the new file and names the old one.
fn migrate(kernel_id: u32, from: &Channel, to: &Channel) -> Result<()> {
    let mut events_reported = MigrateIdResponse::new_zeroed();
    let old = Attachment::OldChannel(&*from.ucma);
    let request = MigrateId::new(kernel_id);
    to.ucma
        .transact(&request, &mut events_reported, old)
        .map_err(|error| Error::command(Operation::Migrate, MigrateId::NUMBER, &error))
}
