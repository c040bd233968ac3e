//! Messages that were received.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_verbs::Buffer;

use super::queue_pair::ReturnedMemory;
use super::state::Arrival;

/// A message of the peer: its bytes, in the memory that the device has written them to.
///
/// Dropping it makes room for another message: its memory is posted again while the
/// connection is open. It may outlive the connection.
pub struct Message {
    buffer: Option<Buffer>,
    length: usize,
    immediate: Option<u32>,
    returned_memory: Arc<ReturnedMemory>,
}

impl Message {
    pub(super) fn new(arrival: Arrival, returned_memory: &Arc<ReturnedMemory>) -> Self {
        Self {
            buffer: arrival.buffer,
            length: arrival.length,
            immediate: arrival.immediate,
            returned_memory: Arc::clone(returned_memory),
        }
    }

    /// The immediate data of the message, in host order, if the peer has sent some (see
    /// [`SendOperation`](rdmacm_verbs::SendOperation)).
    #[must_use]
    #[doc(alias = "imm_data")]
    pub fn immediate(&self) -> Option<u32> {
        self.immediate
    }
}

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = self.buffer.as_deref().unwrap_or_default();
        bytes.get(..self.length).unwrap_or(bytes)
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Message {
    #[inline]
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.returned_memory.add(buffer);
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("bytes", &&**self)
            .field("immediate", &self.immediate)
            .finish_non_exhaustive()
    }
}
