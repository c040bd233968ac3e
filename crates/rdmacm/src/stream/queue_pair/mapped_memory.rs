//! Memory that one side maps, and the other one writes at an offset.

use rdmacm_core::AccessFlags;
use rdmacm_verbs::{Error, RemoteAccessRegion};

use super::StreamQueuePair;
use crate::stream::refusal::Refusal;

impl StreamQueuePair {
    /// Registers memory that the peer may write.
    pub(in crate::stream) fn expose(&self, length: usize) -> Result<RemoteAccessRegion, Error> {
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        self.queue_pair.protection_domain().expose(length, access)
    }

    /// Whether the peer has room for another mapped region.
    pub(in crate::stream) fn has_map_entry(&self) -> bool {
        self.send.lock().has_map_entry()
    }

    /// Tells the peer of memory that it may write at an offset; `None` if that must wait.
    pub(in crate::stream) fn map(
        &self,
        memory: &RemoteAccessRegion,
        offset: u64,
    ) -> Option<Result<usize, Refusal>> {
        self.post(|send| {
            if !send.has_map_entry() {
                return Err(Refusal::NoMapEntry);
            }
            let is_posted = send.map(&self.queue_pair, memory, offset)?;
            Ok(is_posted.then_some(0))
        })
    }

    /// Writes into memory that the peer has mapped, as many bytes as there is room for; `None`
    /// if there is none.
    pub(in crate::stream) fn write_at(
        &self,
        bytes: &[u8],
        offset: u64,
    ) -> Option<Result<usize, Refusal>> {
        self.post(|send| {
            if send.peer_maps.locate(offset, 0).is_none() {
                return Err(Refusal::NotMapped);
            }
            let bytes = send.write_at(&self.queue_pair, bytes, offset)?;
            Ok((bytes > 0).then_some(bytes))
        })
    }
}
