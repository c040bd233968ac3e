//! Wakers.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::id_state::Channel;

/// Ends a wait for events from another thread.
///
/// One call that waits for an event or reads one, such as
/// [`EventChannel::next_event`](crate::EventChannel::next_event),
/// [`try_next_event`](crate::EventChannel::try_next_event) or
/// [`wait`](crate::EventChannel::wait), the one that waits or else the next one, returns
/// [`Error::Woken`](crate::Error::Woken) before any event. Several wake-ups before that call count
/// as one. A waker does not keep its channel open.
#[derive(Clone)]
pub struct Waker(Weak<Channel>);

impl Waker {
    pub(super) fn new(channel: &Arc<Channel>) -> Self {
        Self(Arc::downgrade(channel))
    }

    /// Wakes one waiting call; has no effect once the channel is gone.
    pub fn wake(&self) {
        if let Some(channel) = self.0.upgrade() {
            channel.ucma.wake();
        }
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waker").finish_non_exhaustive()
    }
}
