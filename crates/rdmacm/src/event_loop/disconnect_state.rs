//! Whether the peer has disconnected.

use std::sync::Weak;

use rdmacm_core::{IdHandle, QueuePair};

use crate::sync::{Mutex, MutexGuard};

/// Whether the peer has disconnected, and how to reply to it.
#[derive(Default)]
pub(crate) struct DisconnectState(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    reply: Option<DisconnectReply>,
    /// The peer has disconnected.
    has_peer_disconnected: bool,
    /// This side has disconnected because its queue pair failed.
    is_abandoned: bool,
}

/// How to reply to the peer's disconnect request, which a RoCE peer waits for.
struct DisconnectReply {
    id: IdHandle,
    queue_pair: Weak<dyn QueuePair>,
}

impl DisconnectState {
    /// From now on reading the peer's disconnect request also replies to it.
    pub(super) fn reply_with(&self, id: &IdHandle, queue_pair: Weak<dyn QueuePair>) {
        self.inner().reply = Some(DisconnectReply {
            id: id.clone(),
            queue_pair,
        });
    }

    /// This side disconnects: from now on there is nothing to reply to. Returns whether
    /// the peer has disconnected already.
    pub(crate) fn begin(&self) -> bool {
        let mut inner = self.inner();
        inner.reply = None;
        inner.has_peer_disconnected
    }

    /// This side disconnects because its queue pair failed. Returns whether there is a
    /// peer to disconnect from, once.
    pub(super) fn abandon(&self) -> bool {
        let mut inner = self.inner();
        let was_abandoned = std::mem::replace(&mut inner.is_abandoned, true);
        !was_abandoned && !inner.has_peer_disconnected
    }

    /// The peer has disconnected. Replies, if this side has not disconnected before.
    pub(super) fn reply(&self) {
        let mut inner = self.inner();
        inner.has_peer_disconnected = true;
        let Some(DisconnectReply { id, queue_pair }) = inner.reply.take() else {
            return;
        };
        drop(inner);
        // Without an owner the id is being destroyed, which replies as well.
        if let Some(queue_pair) = queue_pair.upgrade() {
            let _ = id.with_queue_pair(queue_pair.as_ref()).disconnect();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }
}
