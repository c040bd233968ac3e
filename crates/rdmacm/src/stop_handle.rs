//! Stopping from another thread or task.

use std::sync::{Arc, Weak};

use crate::event_loop::EventQueue;

/// Stops a listener or a connection from another thread or task. It does not keep the
/// listener or the connection alive, and does nothing once that is dropped.
///
/// See `Listener::stop_handle`, `RdmaListener::stop_handle` and `Connection::stop_handle`.
#[derive(Clone, Debug)]
pub struct StopHandle(Weak<EventQueue>);

impl StopHandle {
    pub(crate) fn new(queue: &Arc<EventQueue>) -> Self {
        Self(Arc::downgrade(queue))
    }

    /// Whether what it stops was not dropped.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Stops it: see `Listener::stop`, `RdmaListener::stop` and `Connection::stop`. Do not call it in
    /// a signal handler, as it locks: let a thread or a task wait for the signal.
    pub fn stop(&self) {
        if let Some(queue) = self.0.upgrade() {
            queue.close();
        }
    }
}
