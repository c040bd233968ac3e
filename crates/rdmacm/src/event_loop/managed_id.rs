//! An id of an event loop, from its creation to its destruction.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use rdmacm_core::{CmId, IdHandle, QueuePair, Result, Transport};

use super::{Connecting, EventLoop, EventQueue, HandshakePermit, QueuedEvent, wait_for};

/// An id, its event queue and its queue pair, if it has one. Dropping it moves the queue
/// pair to ERR, destroys the id and drops what is queued.
pub(crate) struct ManagedId {
    event_loop: Arc<EventLoop>,
    /// Event loops it was on before: they may still have events that were read before
    /// it migrated.
    former: Vec<Weak<EventLoop>>,
    queue: Arc<EventQueue>,
    handle: IdHandle,
    /// The CONNECT command, if it runs on the blocking executor.
    connecting: Option<Arc<Connecting>>,
    resources: Option<IdResources>,
}

/// What is destroyed with the id, in this order.
struct IdResources {
    id: CmId,
    queue_pair: Option<Arc<dyn QueuePair>>,
    /// An iWARP handshake is in flight, during which destroying blocks.
    in_handshake: bool,
}

impl ManagedId {
    /// An id of the event loop's channel, whose events go to `queue`.
    pub(crate) fn new(event_loop: &Arc<EventLoop>, id: CmId, queue: Arc<EventQueue>) -> Self {
        queue.trace().record_id(&id);
        event_loop.add_id(&id, &queue);
        Self {
            event_loop: Arc::clone(event_loop),
            former: Vec::new(),
            queue,
            handle: id.handle(),
            connecting: None,
            resources: Some(IdResources {
                id,
                queue_pair: None,
                in_handshake: false,
            }),
        }
    }

    pub(crate) fn event_loop(&self) -> &Arc<EventLoop> {
        &self.event_loop
    }

    pub(crate) fn id(&self) -> &IdHandle {
        &self.handle
    }

    pub(crate) fn queue(&self) -> &Arc<EventQueue> {
        &self.queue
    }

    pub(crate) fn queue_pair(&self) -> Option<&Arc<dyn QueuePair>> {
        self.resources.as_ref()?.queue_pair.as_ref()
    }

    pub(crate) fn attach(&mut self, queue_pair: Arc<dyn QueuePair>) {
        if let Some(resources) = &mut self.resources {
            resources.queue_pair = Some(queue_pair);
        }
    }

    /// A handshake begins, or is over.
    pub(crate) fn set_in_handshake(&mut self, in_handshake: bool) {
        if let Some(resources) = &mut self.resources {
            let queue_pair = resources.queue_pair.as_ref();
            let iwarp = queue_pair.is_some_and(|queue_pair| is_iwarp(queue_pair.as_ref()));
            resources.in_handshake = in_handshake && iwarp;
        }
    }

    /// The CONNECT command is about to run on the blocking executor.
    pub(crate) fn begin_connecting(&mut self, permit: HandshakePermit) -> Arc<Connecting> {
        let connecting = Arc::new(Connecting::new(permit));
        Arc::clone(self.connecting.insert(connecting))
    }

    /// From now on reading the peer's disconnect request also replies to it: a RoCE peer
    /// waits for the reply. On iWARP the connection is closed by then.
    pub(crate) fn reply_to_disconnect(&self) {
        if let Some(queue_pair) = self.non_iwarp_queue_pair() {
            let queue_pair = Arc::downgrade(queue_pair);
            let state = self.queue.disconnect_state();
            state.reply_with(&self.handle, queue_pair);
        }
    }

    /// The queue pair has failed: disconnects, as the peer need not have noticed. On iWARP
    /// the connection is closed with the queue pair.
    pub(crate) fn abandon(&self) {
        let queue_pair = self.non_iwarp_queue_pair();
        if let Some(queue_pair) = queue_pair.filter(|_| self.queue.disconnect_state().abandon()) {
            let _ = self
                .handle
                .with_queue_pair(queue_pair.as_ref())
                .disconnect();
        }
    }

    fn non_iwarp_queue_pair(&self) -> Option<&Arc<dyn QueuePair>> {
        let queue_pair = self.queue_pair();
        queue_pair.filter(|queue_pair| !is_iwarp(queue_pair.as_ref()))
    }

    /// Waits for the next event.
    pub(crate) fn next(&self, until: Option<Instant>) -> impl Future<Output = Result<QueuedEvent>> {
        wait_for(&self.event_loop, &*self.queue, until)
    }

    /// Leaves the id to the end of the process, which keeps its channel open as well: for
    /// an id that the kernel must not be asked to destroy. Its connect requests are
    /// rejected.
    pub(crate) fn leak(mut self) {
        if let Some(IdResources { id, .. }) = self.resources.take() {
            std::mem::forget(id);
        }
    }

    fn was_on(&self, event_loop: &Arc<EventLoop>) -> bool {
        let event_loop = Arc::downgrade(event_loop);
        self.former.iter().any(|former| former.ptr_eq(&event_loop))
    }

    /// Moves to another event loop with everything that was not read.
    pub(crate) fn migrate(&mut self, to: &Arc<EventLoop>) -> Result<()> {
        let Some(resources) = &self.resources else {
            return Ok(());
        };
        if Arc::ptr_eq(&self.event_loop, to) {
            return Ok(());
        }
        // Both event loops know the queue from here on, so an event that one of them has
        // read and not dispatched yet finds it.
        to.add_id(&self.handle, &self.queue);
        if let Err(error) = resources.id.migrate(to.channel()) {
            if !self.was_on(to) {
                to.remove_id(&self.handle);
            }
            return Err(error);
        }
        let from = std::mem::replace(&mut self.event_loop, Arc::clone(to));
        if !self.was_on(&from) {
            self.former.retain(|one| one.strong_count() > 0);
            self.former.push(Arc::downgrade(&from));
        }
        Ok(())
    }
}

pub(crate) fn is_iwarp(queue_pair: &dyn QueuePair) -> bool {
    queue_pair.transport() == Transport::IWarp
}

impl Drop for ManagedId {
    fn drop(&mut self) {
        if self.event_loop.is_in_child() {
            // They are the parent's, and a thread of it may have held a lock of theirs at the fork.
            let queue = Arc::clone(&self.queue);
            std::mem::forget((self.resources.take(), self.connecting.take(), queue));
            return;
        }
        self.event_loop.remove_id(&self.handle);
        for event_loop in self.former.iter().filter_map(Weak::upgrade) {
            event_loop.remove_id(&self.handle);
        }
        let Some(resources) = self.resources.take() else {
            return;
        };
        let in_handshake = resources.in_handshake;
        let destroys = DestroyOnDrop {
            connecting: self.connecting.take().filter(|_| in_handshake),
            resources: Some(resources),
        };
        if in_handshake {
            let destroy = move || drop(destroys);
            self.event_loop.executor().spawn(Box::new(destroy));
        }
    }
}

/// Destroys an id, also if the executor drops it instead of running it.
struct DestroyOnDrop {
    resources: Option<IdResources>,
    connecting: Option<Arc<Connecting>>,
}

impl Drop for DestroyOnDrop {
    fn drop(&mut self) {
        let Some(resources) = self.resources.take() else {
            return;
        };
        resources.destroy(|id, queue_pair| match &self.connecting {
            Some(connecting) => connecting.abort(id, queue_pair),
            None => drop(id),
        });
    }
}

impl IdResources {
    fn destroy(self, destroy_id: impl FnOnce(CmId, Option<&Arc<dyn QueuePair>>)) {
        let Self { id, queue_pair, .. } = self;
        if let Some(queue_pair) = &queue_pair {
            // What is posted completes as flushed. The id is destroyed in any case.
            let _ = id.with_queue_pair(queue_pair.as_ref()).move_to_error();
        }
        destroy_id(id, queue_pair.as_ref());
        drop(queue_pair);
    }
}

impl fmt::Debug for ManagedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedId")
            .field("id", &self.handle)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
