//! Writes into memory that the peer has mapped, and memory that this side maps.

use rdmacm_rsocket::{MapEntry, Sender};
use rdmacm_verbs::{QueuePair, RemoteAccessRegion, RemoteMemory, SendOperation, SendRequest};

use super::{BEYOND, Charge, MAX_WRITE, Payload, SendState, remote};
use crate::stream::failure::StreamFailure;

impl SendState {
    /// Writes at an offset as many bytes as there is room for, up to the end of what is mapped.
    pub(in crate::stream) fn write_at(
        &mut self,
        queue_pair: &QueuePair,
        bytes: &[u8],
        offset: u64,
    ) -> Result<usize, StreamFailure> {
        let mut done = 0;
        while let Some((address, key, left)) = self.peer_maps.locate(offset, done) {
            let bytes = bytes.get(done..).unwrap_or_default();
            let (start, free) = self.ring.free();
            let room = left.min(free).min(MAX_WRITE) as usize;
            let bytes = bytes.get(..room).unwrap_or(bytes);
            let sender = self.sender.as_mut();
            let may_post = self.may_send && !bytes.is_empty();
            if !may_post || !sender.is_some_and(Sender::take_request) {
                break;
            }
            let remote = RemoteMemory::new(address, bytes.len() as u64, key).ok_or(BEYOND)?;
            let start = start as usize;
            self.memory.write(start, bytes);
            let sge = self.memory.slice(start..start + bytes.len());
            let sge = sge.map_err(StreamFailure::refused)?;
            // Not more than is free, which is 32 bits.
            let length = u32::try_from(bytes.len()).unwrap_or(0);
            let charge = Charge {
                bytes: length,
                ring_bytes: self.ring.take(length),
                data_requests: 1,
                ..Charge::default()
            };
            self.written += u64::from(length);
            let request = SendRequest::new(SendOperation::Write(remote), sge);
            self.post_one(queue_pair, request, charge)?;
            done += bytes.len();
        }
        Ok(done)
    }

    /// Whether there is room for a write at an offset of at least one byte, or for a map.
    pub(in crate::stream) fn has_room_at_offsets_or_to_map(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| {
            let at_offsets = sender.has_request() && self.ring.free_bytes() > 0;
            self.may_send && (at_offsets || sender.writes_left() > 0)
        })
    }

    /// Writes an entry for the memory into the peer's table of maps. Returns whether there was
    /// room for the request.
    pub(in crate::stream) fn map(
        &mut self,
        queue_pair: &QueuePair,
        memory: &RemoteAccessRegion,
        offset: u64,
    ) -> Result<bool, StreamFailure> {
        let at_peer = memory.remote();
        let entry = MapEntry {
            offset,
            address: at_peer.address(),
            key: at_peer.key(),
            length: u32::try_from(memory.len()).unwrap_or(u32::MAX),
        };
        let Some(sender) = self.sender.as_mut().filter(|_| self.may_send) else {
            return Ok(false);
        };
        // No more than 16 bits, as there are entries of the peer.
        let index = u16::try_from(self.maps.len()).unwrap_or(u16::MAX);
        let Some((write, bytes)) = sender.write_map_entry(index, entry) else {
            return Ok(false);
        };
        let charge = Charge {
            data_requests: self.transport.requests_per_write(),
            ..Charge::default()
        };
        let payload = Payload::Inline(remote(write)?, &bytes);
        self.maps.push(memory.clone());
        self.post(queue_pair, payload, write.message, charge)?;
        Ok(true)
    }

    /// Whether the peer has room for another mapped region.
    pub(in crate::stream) fn has_map_entry(&self) -> bool {
        let entries = self.sender.as_ref().map_or(0, Sender::map_entries);
        self.maps.len() < usize::from(entries)
    }
}
