//! An id with a route, ready to connect.

use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnParam, Deadline, IdHandle, QueuePair};

use super::Connection;
#[cfg(feature = "verbs")]
use crate::error::Cause;
use crate::error::{Result, Target};
use crate::hub::block_on;
#[cfg(feature = "verbs")]
use crate::messages::{Maker, MessageOptions, Messages};
use crate::mode::{Async, Blocking, Mode};
use crate::plan::Plan;
#[cfg(feature = "verbs")]
use crate::queue_pairs::QueuePairs;
use crate::reactor::Runtime;
#[cfg(feature = "verbs")]
use crate::step::Step;
use crate::steps::{self, Attempt, Routed};

/// A peer whose address and route are resolved: a device is known, so a queue
/// pair can be made on it and connected. Dropped, nothing is left.
#[derive(Debug)]
pub struct Resolved<M> {
    routed: Routed,
    plan: Plan,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> Resolved<M> {
    pub(super) fn new(routed: Routed, plan: Plan) -> Self {
        Self {
            routed,
            plan,
            mode: PhantomData,
        }
    }

    /// The id: its device, addresses, GIDs and path records can be asked for,
    /// and a queue pair moved to INIT to post receives
    /// (`resolved.id().with_queue_pair(&queue_pair).init()`).
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.routed.tracked.id()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// Those of [`IdHandle::addresses`].
    pub fn peer_addr(&self) -> Result<Option<CmAddr>, rdmacm_core::Error> {
        self.id().peer_addr()
    }

    /// How long connecting may take, counted from the call. Otherwise as long
    /// as the [`Connector`](super::Connector) allowed for everything.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.plan.deadline = deadline.into();
        self
    }

    /// What to tell the peer; the queue pair's number is filled in.
    #[must_use]
    pub fn param(mut self, param: ConnParam) -> Self {
        self.plan.param = param;
        self
    }

    /// How the connection is to carry messages, for [`connect`](Self::connect).
    /// Otherwise as the [`Connector`](super::Connector) said.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn messages(mut self, options: MessageOptions) -> Self {
        self.plan.messages = options;
        self
    }

    #[cfg(feature = "verbs")]
    async fn connect_messages(self) -> Result<Connection<Messages, M>> {
        let maker = Maker::new(self.routed.tracked.hub(), self.plan.messages);
        let made = maker.make(self.id()).map_err(|error| {
            let attempt = Attempt::new(self.routed.tracked.hub(), None, Target::default());
            attempt.fail_on(self.id(), Step::QueuePair, Cause::QueuePair(error))
        });
        let connection = self.connect_async(made?).await?;
        connection.queue_pair().traffic().nudge();
        Ok(connection.carrying_messages())
    }

    async fn connect_async<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> Result<Connection<Q, M>> {
        let hub = Arc::clone(self.routed.tracked.hub());
        let until = self.plan.deadline.until(hub.now());
        let address = self.routed.tracked.id().peer_addr().ok().flatten();
        let target = address.map_or_else(Target::default, Target::from);
        let attempt = Attempt::new(&hub, until, target);
        let queue_pair = Arc::new(queue_pair);
        let shared: Arc<dyn QueuePair> = queue_pair.clone();
        let param = self.plan.conn_param();
        let connecting = steps::connect(attempt, self.routed, shared, param);
        Ok(Connection::new(connecting.await?, queue_pair))
    }
}

impl Resolved<Blocking> {
    /// Connects, ready to send and to receive.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[cfg(feature = "verbs")]
    #[doc(alias = "rdma_connect")]
    pub fn connect(self) -> Result<Connection<Messages, Blocking>> {
        let hub = Arc::clone(self.routed.tracked.hub());
        block_on(&hub, self.connect_messages())
    }

    /// Connects with a queue pair of the caller's on the id's device.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[doc(alias = "rdma_connect")]
    pub fn connect_on<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> Result<Connection<Q, Blocking>> {
        let hub = Arc::clone(self.routed.tracked.hub());
        block_on(&hub, self.connect_async(queue_pair))
    }
}

impl<R: Runtime> Resolved<Async<R>> {
    /// Connects, ready to send and to receive. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[cfg(feature = "verbs")]
    #[doc(alias = "rdma_connect")]
    pub async fn connect(self) -> Result<Connection<Messages, Async<R>>> {
        self.connect_messages().await
    }

    /// Connects with a queue pair of the caller's on the id's device. Dropping the future cancels
    /// it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[doc(alias = "rdma_connect")]
    pub async fn connect_on<Q: QueuePair + 'static>(
        self,
        queue_pair: Q,
    ) -> Result<Connection<Q, Async<R>>> {
        self.connect_async(queue_pair).await
    }
}
