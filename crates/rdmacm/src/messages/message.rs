//! Messages that were received.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use rdmacm_verbs::Buffer;

use super::state::Arrival;
use super::traffic::Traffic;

/// A message of the peer: its bytes, where the device put them.
///
/// Dropped, it makes room for another: its memory is posted again, unless the
/// connection is gone. It may outlive the connection.
pub struct Message {
    buffer: Option<Buffer>,
    length: usize,
    immediate: Option<u32>,
    traffic: Weak<Traffic>,
}

impl Message {
    pub(super) fn new(arrival: Arrival, traffic: &Arc<Traffic>) -> Self {
        Self {
            buffer: arrival.buffer,
            length: arrival.length,
            immediate: arrival.immediate,
            traffic: Arc::downgrade(traffic),
        }
    }

    /// The word that came with it, in this machine's order, from a peer that sends
    /// such (see [`SendOperation`](rdmacm_verbs::SendOperation)).
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
        if let (Some(buffer), Some(traffic)) = (self.buffer.take(), self.traffic.upgrade()) {
            traffic.post_receive(buffer);
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
