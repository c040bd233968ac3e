//! Messages that were received.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use rdmacm_verbs::Buffer;

use super::queue_pair::MessageQueuePair;
use super::state::Arrival;

/// A message of the peer: its bytes, in the memory that the device has written them to.
///
/// Dropping it makes room for another message: its memory is posted again while the
/// connection is open. It may outlive the connection.
pub struct Message {
    buffer: Option<Buffer>,
    length: usize,
    immediate: Option<u32>,
    queue_pair: Weak<MessageQueuePair>,
}

impl Message {
    pub(super) fn new(arrival: Arrival, queue_pair: &Arc<MessageQueuePair>) -> Self {
        Self {
            buffer: arrival.buffer,
            length: arrival.length,
            immediate: arrival.immediate,
            queue_pair: Arc::downgrade(queue_pair),
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
    fn drop(&mut self) {
        if let (Some(buffer), Some(queue_pair)) = (self.buffer.take(), self.queue_pair.upgrade()) {
            queue_pair.post_receive(buffer);
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
