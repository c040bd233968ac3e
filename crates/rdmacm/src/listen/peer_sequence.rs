//! The peers of a listener, one after the other.

use crate::error::Result;

/// Whether more peers come: what an iterator over a listener remembers.
#[derive(Debug, Default)]
pub(crate) struct PeerSequence {
    has_ended: bool,
}

impl PeerSequence {
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The item for an outcome of accepting: `None` once the listener is stopped, and from then on.
    /// An error that ends the listener is the last item before.
    pub(crate) fn item<T>(&mut self, accepted: Result<T>) -> Option<Result<T>> {
        match accepted {
            Err(error) if error.is_stopped() => {
                self.has_ended = true;
                None
            }
            Err(error) => {
                self.has_ended = error.ends_listener();
                Some(Err(error))
            }
            Ok(peer) => Some(Ok(peer)),
        }
    }
}
