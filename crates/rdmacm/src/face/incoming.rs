//! A peer that wants to connect.

use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnInfo, ConnParam, Deadline, Event, IdHandle, QueuePair};

use super::Connection;
use crate::error::{Cause, Result, Target};
use crate::hub::{Tracked, block_on};
#[cfg(feature = "verbs")]
use crate::messages::{Maker, MessageOptions, Messages};
use crate::mode::{Async, Blocking, Mode};
use crate::plan::ACCEPT_DEADLINE;
use crate::queue_pairs::QueuePairs;
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::{self, Attempt};

/// A peer that wants to connect: accept it, or reject it. Dropped, it is
/// rejected without a word.
#[derive(Debug)]
pub struct Incoming<M> {
    tracked: Tracked,
    request: Box<Event>,
    param: ConnParam,
    deadline: Deadline,
    #[cfg(feature = "verbs")]
    messages: MessageOptions,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> Incoming<M> {
    pub(super) fn new(tracked: Tracked, request: Box<Event>) -> Self {
        Self {
            tracked,
            request,
            param: ConnParam::new(),
            deadline: ACCEPT_DEADLINE.into(),
            #[cfg(feature = "verbs")]
            messages: MessageOptions::new(),
            mode: PhantomData,
        }
    }

    /// What the peer said, as [`Event::private_data`] received it.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        self.request.private_data()
    }

    /// What the peer said of its queue pair, and asked for.
    #[must_use]
    pub fn peer(&self) -> Option<ConnInfo> {
        self.request.conn()
    }

    /// The id: its device, addresses, GIDs and path records can be asked for,
    /// and a queue pair moved to INIT to post receives
    /// (`incoming.id().with_queue_pair(&queue_pair).init()`).
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.tracked.id()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// Those of [`IdHandle::addresses`].
    pub fn peer_addr(&self) -> Result<Option<CmAddr>, rdmacm_core::Error> {
        self.id().peer_addr()
    }

    /// How long the peer may take to be there once it is accepted, counted from
    /// then; [`ACCEPT_DEADLINE`](crate::ACCEPT_DEADLINE) unless set.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// What to tell the peer; the queue pair's number is filled in. Depths that
    /// are left open agree to what the peer asks for, as far as the device goes.
    #[must_use]
    pub fn param(mut self, param: ConnParam) -> Self {
        self.param = param;
        self
    }

    /// How the connection is to carry messages, for [`accept`](Self::accept).
    /// Otherwise as the [`Listener`](super::Listener) was told.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn messages(mut self, options: MessageOptions) -> Self {
        self.messages = options;
        self
    }

    /// Rejects the peer, which reads the data with the rejection.
    ///
    /// # Errors
    /// [`Step::Reject`]: the data are too long, or the peer has gone. It is
    /// rejected in any case.
    #[doc(alias = "rdma_reject")]
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        let rejected = self.id().reject(private_data);
        rejected.map_err(|error| self.attempt().fail_on(self.id(), Step::Reject, error))
    }

    fn attempt(&self) -> Attempt {
        let hub = self.tracked.hub();
        let until = self.deadline.until(hub.now());
        Attempt::new(hub, until, Target::default())
    }

    async fn accept_async<Q: QueuePair + 'static>(self, queue_pair: Q) -> Result<Connection<Q, M>> {
        let attempt = self.attempt();
        let queue_pair = Arc::new(queue_pair);
        let shared: Arc<dyn QueuePair> = queue_pair.clone();
        let peer = self.request.conn();
        let accepting = steps::establish(attempt, self.tracked, shared, self.param, peer);
        Ok(Connection::new(accepting.await?, queue_pair))
    }

    async fn accept_with_async<P: QueuePairs>(
        self,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, M>> {
        let queue_pair = queue_pairs.make(self.id()).map_err(|error| {
            let cause = Cause::QueuePair(error);
            self.attempt().fail_on(self.id(), Step::QueuePair, cause)
        })?;
        self.accept_async(queue_pair).await
    }

    #[cfg(feature = "verbs")]
    async fn accept_messages(self) -> Result<Connection<Messages, M>> {
        let maker = Maker::new(self.tracked.hub(), self.messages);
        let accepted = self.accept_with_async(maker).await?;
        Ok(accepted.carrying_messages())
    }
}

impl Incoming<Blocking> {
    /// Accepts the peer, ready to send and to receive: with a queue pair of a soft
    /// device, and receives posted before the peer hears of it. Waits until it is
    /// there.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; the peer is rejected
    /// then.
    #[cfg(feature = "verbs")]
    #[doc(alias = "rdma_accept")]
    pub fn accept(self) -> Result<Connection<Messages, Blocking>> {
        let hub = Arc::clone(self.tracked.hub());
        block_on(&hub, self.accept_messages())
    }

    /// Accepts the peer with a queue pair of the caller's on the id's device, and
    /// waits until it is there. Where it has parted again by then, the connection has
    /// ended; what it sent is there.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; the peer is rejected
    /// then.
    #[doc(alias = "rdma_accept")]
    pub fn accept_on<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> Result<Connection<Q, Blocking>> {
        let hub = Arc::clone(self.tracked.hub());
        block_on(&hub, self.accept_async(queue_pair))
    }

    /// Accepts the peer with a queue pair made for it.
    ///
    /// # Errors
    /// Those of [`accept_on`](Self::accept_on).
    pub fn accept_with<P: QueuePairs>(
        self,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, Blocking>> {
        let hub = Arc::clone(self.tracked.hub());
        block_on(&hub, self.accept_with_async(queue_pairs))
    }
}

impl<R: Runtime> Incoming<Async<R>> {
    /// Accepts the peer, ready to send and to receive: with a queue pair of a soft
    /// device, and receives posted before the peer hears of it. Waits until it is
    /// there. Dropping the future rejects it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; the peer is rejected
    /// then.
    #[cfg(feature = "verbs")]
    #[doc(alias = "rdma_accept")]
    pub async fn accept(self) -> Result<Connection<Messages, Async<R>>> {
        self.accept_messages().await
    }

    /// Accepts the peer with a queue pair of the caller's on the id's device, and
    /// waits until it is there. Where it has parted again by then, the connection has
    /// ended; what it sent is there. Dropping the future rejects the peer.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; the peer is rejected
    /// then.
    #[doc(alias = "rdma_accept")]
    pub async fn accept_on<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> Result<Connection<Q, Async<R>>> {
        self.accept_async(queue_pair).await
    }

    /// Accepts the peer with a queue pair made for it.
    ///
    /// # Errors
    /// Those of [`accept_on`](Self::accept_on).
    pub async fn accept_with<P: QueuePairs>(
        self,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, Async<R>>> {
        self.accept_with_async(queue_pairs).await
    }
}
