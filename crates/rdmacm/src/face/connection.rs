//! A connection.

use std::marker::PhantomData;
use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnInfo, Deadline, IdHandle};

use crate::ending::Ending;
use crate::error::{Cause, Result, Target};
use crate::hub::{Tracked, block_on};
use crate::mode::{Async, Blocking, Mode};
use crate::node::Node;
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::{self, Attempt, Carried, Established};

#[cfg(feature = "verbs")]
mod messages;
#[cfg(feature = "verbs")]
mod verbs;

/// A connected queue pair.
///
/// When the peer parts, whoever drives the node reads of it and answers, which
/// a RoCE or InfiniBand peer waits for: any step of any connection or listener
/// on the node does, and [`ended`](Self::ended) does nothing else.
///
/// Dropping the connection aborts it: what is posted is flushed, the peer is
/// told, nobody is waited for. [`close`](Self::close) parts in order.
///
/// A device of siw, or of rxe on Linux 6.1, is removed only when nobody has it
/// open. Whoever waits on a connection hears of that and lets go of the device;
/// one that is kept with nobody waiting on it holds the device until it is used or
/// dropped, also after its end. With a queue pair of the caller's it is the waits for
/// completions that hear of it, or `Context::heed_removal` that is called now and then;
/// [`ended`](Self::ended) alone does not.
#[derive(Debug)]
pub struct Connection<Q, M> {
    // Before the rest: the last to hold the queue pair must not be the caller's
    // thread where ending it takes long.
    queue_pair: Arc<Q>,
    carried: Carried,
    established: Established,
    mode: PhantomData<fn() -> M>,
}

impl<Q, M: Mode> Connection<Q, M> {
    pub(super) fn new(established: Established, queue_pair: Arc<Q>) -> Self {
        Self {
            queue_pair,
            established,
            carried: Carried::default(),
            mode: PhantomData,
        }
    }

    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &Q {
        &self.queue_pair
    }

    /// The id: its device, addresses, GIDs and path records can be asked for.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.tracked().id()
    }

    /// The local address.
    ///
    /// # Errors
    /// Those of [`IdHandle::addresses`].
    pub fn local_addr(&self) -> Result<Option<CmAddr>, rdmacm_core::Error> {
        self.id().local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// Those of [`IdHandle::addresses`].
    pub fn peer_addr(&self) -> Result<Option<CmAddr>, rdmacm_core::Error> {
        self.id().peer_addr()
    }

    /// What the peer said with its answer, on the connecting side, as
    /// [`Event::private_data`](rdmacm_core::Event::private_data) received it. The accepting side got it with the
    /// request.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.established.private_data
    }

    /// What the peer said of its queue pair.
    #[must_use]
    pub fn peer(&self) -> Option<ConnInfo> {
        self.established.peer
    }

    /// Moves the connection to another node, with what was not read yet.
    ///
    /// # Errors
    /// [`Step::Migrate`]: the kernel refused, and the connection is where it was.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&mut self, to: &Node<M>) -> Result<()> {
        let attempt = self.attempt(Deadline::Never);
        let moved = self.established.tracked.migrate(&to.hub);
        moved.map_err(|error| attempt.fail(Step::Migrate, Cause::from(error)))
    }

    fn tracked(&self) -> &Tracked {
        &self.established.tracked
    }

    fn attempt(&self, deadline: Deadline) -> Attempt {
        let hub = self.tracked().hub();
        let until = deadline.until(hub.now());
        Attempt::new(hub, until, Target::default())
    }

    async fn ended_async(&self, deadline: Deadline) -> Result<Ending> {
        let attempt = self.attempt(deadline);
        steps::ended(&attempt, self.tracked(), &self.carried).await
    }

    async fn close_async(self, deadline: Deadline) -> Result<()> {
        let attempt = self.attempt(deadline);
        let Self {
            queue_pair,
            established,
            carried,
            ..
        } = self;
        let closed = steps::close(&attempt, established.tracked, &carried).await;
        drop(queue_pair);
        closed
    }
}

impl<Q> Connection<Q, Blocking> {
    /// Waits until the connection is over, and returns how it ended: the peer
    /// disconnected or was lost, the device went away or, of a connection that carries
    /// [messages](crate::Messages), a request failed. That of a queue pair of the
    /// caller's is the caller's to notice.
    ///
    /// # Errors
    /// [`Cause::Deadline`]: it is not over yet.
    pub fn ended(&self, deadline: impl Into<Deadline>) -> Result<Ending> {
        block_on(self.tracked().hub(), self.ended_async(deadline.into()))
    }

    /// Parts in order: waits until the messages that were sent have arrived, flushes
    /// what is posted besides, tells the peer, and waits until it knows. [`CLOSE_DEADLINE`](crate::CLOSE_DEADLINE) is a good deadline.
    ///
    /// # Errors
    /// [`Cause::Deadline`] where the peer did not answer in time,
    /// [`Cause::Event`] where the kernel gave up; where a message has not arrived,
    /// what ended the connection before. It is gone in any case.
    #[doc(alias = "rdma_disconnect")]
    pub fn close(self, deadline: impl Into<Deadline>) -> Result<()> {
        let hub = Arc::clone(self.tracked().hub());
        block_on(&hub, self.close_async(deadline.into()))
    }
}

impl<Q: Send + Sync, R: Runtime> Connection<Q, Async<R>> {
    /// Waits until the connection is over, and returns how it ended: the peer
    /// disconnected or was lost, the device went away or, of a connection that carries
    /// [messages](crate::Messages), a request failed. That of a queue pair of the
    /// caller's is the caller's to notice. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`Cause::Deadline`]: it is not over yet.
    pub async fn ended(&self, deadline: impl Into<Deadline>) -> Result<Ending> {
        self.ended_async(deadline.into()).await
    }

    /// Parts in order: waits until the messages that were sent have arrived, flushes
    /// what is posted besides, tells the peer, and waits until it knows. [`CLOSE_DEADLINE`](crate::CLOSE_DEADLINE) is a good deadline.
    /// Dropping the future aborts the connection.
    ///
    /// # Errors
    /// [`Cause::Deadline`] where the peer did not answer in time,
    /// [`Cause::Event`] where the kernel gave up; where a message has not arrived,
    /// what ended the connection before. It is gone in any case.
    #[doc(alias = "rdma_disconnect")]
    pub async fn close(self, deadline: impl Into<Deadline>) -> Result<()> {
        self.close_async(deadline.into()).await
    }
}
