//! An id of a hub, from its making to its end.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Instant;

use rdmacm_core::{CmId, IdHandle, QueuePair, Result, Transport};

use super::{Connecting, Hub, Letter, Mailbox, next};

/// An id, its mailbox and its queue pair, if it has one. Dropped, all of it
/// ends: queue pair in error, id destroyed, letters thrown away.
pub(crate) struct Tracked {
    hub: Arc<Hub>,
    /// Where events may still be found that were read before the id moved.
    former: Vec<Weak<Hub>>,
    mailbox: Arc<Mailbox>,
    handle: IdHandle,
    connecting: Arc<Connecting>,
    ends: Option<Ends>,
}

/// What ends with it, in this order.
struct Ends {
    id: CmId,
    queue_pair: Option<Arc<dyn QueuePair>>,
    /// iWARP is in the middle of a handshake, which makes ending wait.
    shaking_hands: bool,
}

impl Tracked {
    /// An id of the hub's channel; its letters go to `mailbox`.
    pub(crate) fn new(hub: &Arc<Hub>, id: CmId, mailbox: Arc<Mailbox>) -> Self {
        hub.introduce(&id, &mailbox);
        Self {
            hub: Arc::clone(hub),
            former: Vec::new(),
            mailbox,
            handle: id.handle(),
            connecting: Arc::default(),
            ends: Some(Ends {
                id,
                queue_pair: None,
                shaking_hands: false,
            }),
        }
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    pub(crate) fn id(&self) -> &IdHandle {
        &self.handle
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    pub(crate) fn queue_pair(&self) -> Option<&Arc<dyn QueuePair>> {
        self.ends.as_ref()?.queue_pair.as_ref()
    }

    pub(crate) fn attach(&mut self, queue_pair: Arc<dyn QueuePair>) {
        if let Some(ends) = &mut self.ends {
            ends.queue_pair = Some(queue_pair);
        }
    }

    /// A handshake begins, or is over.
    pub(crate) fn shakes_hands(&mut self, now: bool) {
        if let Some(ends) = &mut self.ends {
            let iwarp = |queue_pair: &Arc<dyn QueuePair>| is_iwarp(queue_pair.as_ref());
            ends.shaking_hands = now && ends.queue_pair.as_ref().is_some_and(iwarp);
        }
    }

    /// What its CONNECT runs in, where that runs elsewhere.
    pub(crate) fn connecting(&self) -> &Arc<Connecting> {
        &self.connecting
    }

    /// From now on the peer's parting is answered by whoever reads it: a RoCE
    /// peer waits for that. On iWARP the connection is over by then.
    pub(crate) fn answer_parting(&self) {
        if let Some(queue_pair) = self.queue_pair().filter(|one| !is_iwarp(one.as_ref())) {
            self.mailbox
                .answer_with(&self.handle, Arc::downgrade(queue_pair));
        }
    }

    /// The queue pair is done for: the peer, which need not know of it yet, is told.
    /// On iWARP the connection is over with it.
    #[cfg(feature = "verbs")]
    pub(crate) fn give_up(&self) {
        let queue_pair = self.queue_pair().filter(|one| !is_iwarp(one.as_ref()));
        if let Some(queue_pair) = queue_pair.filter(|_| self.mailbox.give_up()) {
            let _ = self
                .handle
                .with_queue_pair(queue_pair.as_ref())
                .disconnect();
        }
    }

    /// The next letter, by `until`.
    pub(crate) async fn next(&self, until: Option<Instant>) -> Result<Letter> {
        next(&self.hub, &*self.mailbox, until).await
    }

    /// Leaves the id to the end of the process, which keeps its channel open as well: for
    /// an id that the kernel must not be asked to destroy. What comes for it is refused.
    pub(crate) fn leak(mut self) {
        if let Some(Ends { id, .. }) = self.ends.take() {
            std::mem::forget(id);
        }
    }

    fn was_on(&self, hub: &Arc<Hub>) -> bool {
        let hub = Arc::downgrade(hub);
        self.former.iter().any(|one| one.ptr_eq(&hub))
    }

    /// Moves to another hub with everything unread.
    pub(crate) fn migrate(&mut self, to: &Arc<Hub>) -> Result<()> {
        let Some(ends) = &self.ends else {
            return Ok(());
        };
        if Arc::ptr_eq(&self.hub, to) {
            return Ok(());
        }
        // Both hubs know the mailbox from here on: an event read here and not
        // handed out yet finds it, whichever of them it was.
        to.introduce(&self.handle, &self.mailbox);
        if let Err(error) = ends.id.migrate(&to.channel) {
            if !self.was_on(to) {
                to.forget(&self.handle);
            }
            return Err(error);
        }
        let from = std::mem::replace(&mut self.hub, Arc::clone(to));
        if !self.was_on(&from) {
            self.former.push(Arc::downgrade(&from));
        }
        Ok(())
    }
}

pub(crate) fn is_iwarp(queue_pair: &dyn QueuePair) -> bool {
    queue_pair.transport() == Transport::IWarp
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.hub.forget(&self.handle);
        for hub in self.former.iter().filter_map(Weak::upgrade) {
            hub.forget(&self.handle);
        }
        let Some(ends) = self.ends.take() else {
            return;
        };
        if ends.shaking_hands {
            let connecting = Arc::clone(&self.connecting);
            let end = move || ends.end(|id, queue_pair| connecting.give_up(id, queue_pair));
            self.hub.offload.run(Box::new(end));
        } else {
            ends.end(|id, _| drop(id));
        }
    }
}

impl Ends {
    fn end(self, end_id: impl FnOnce(CmId, Option<&Arc<dyn QueuePair>>)) {
        let Self { id, queue_pair, .. } = self;
        if let Some(queue_pair) = &queue_pair {
            // What is posted comes back; the id's end follows in any case.
            let _ = id.with_queue_pair(queue_pair.as_ref()).fail();
        }
        end_id(id, queue_pair.as_ref());
        drop(queue_pair);
    }
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracked")
            .field("id", &self.handle)
            .field("mailbox", &self.mailbox)
            .finish_non_exhaustive()
    }
}
