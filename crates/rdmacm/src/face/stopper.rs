//! Stopping a listener from elsewhere.

use std::sync::{Arc, Weak};

use crate::hub::Mailbox;

/// Stops a listener from another thread or task, see
/// [`Listener::stopper`](super::Listener::stopper). It does not keep the listener.
#[derive(Clone, Debug)]
pub struct Stopper(Weak<Mailbox>);

impl Stopper {
    pub(super) fn new(mailbox: &Arc<Mailbox>) -> Self {
        Self(Arc::downgrade(mailbox))
    }

    /// As [`Listener::stop`](super::Listener::stop).
    pub fn stop(&self) {
        if let Some(mailbox) = self.0.upgrade() {
            mailbox.stop();
        }
    }
}
