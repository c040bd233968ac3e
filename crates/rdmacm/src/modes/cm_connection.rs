//! A connection of any queue pair.

use std::sync::Arc;

use rdmacm_core::{CmAddr, ConnInfo, Deadline, IdHandle};

use super::Node;
use crate::attempt::Attempt;
use crate::close_reason::CloseReason;
use crate::error::Result;
use crate::established::Established;
use crate::stage::Stage;

by_mode! {
    /// A connected queue pair, of any library.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::core::{IdHandle, QpType};
        /// use rdmacm::verbs::{Context, QueuePair};
        /// use rdmacm::{CLOSE_DEADLINE, Connector};
        ///
        /// let connector = Connector::new("storage-7:7471");
        /// let connection = connector.connect_with(|id: &IdHandle| {
        ///     let device = id.addresses()?.device.ok_or(std::io::ErrorKind::NotFound)?;
        ///     let context = Context::open_by_id(device)?;
        ///     Ok(QueuePair::options(QpType::RC).create(&context)?)
        /// })?;
        /// println!("{}", connection.peer_addr()?);
        /// connection.close(CLOSE_DEADLINE)?;
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::core::{IdHandle, QpType};
        /// use rdmacm::verbs::{Context, QueuePair};
        /// use rdmacm::CLOSE_DEADLINE;
        /// use rdmacm::tokio::Connector;
        ///
        /// let connector = Connector::new("storage-7:7471");
        /// let connect = connector.connect_with(|id: &IdHandle| {
        ///     let device = id.addresses()?.device.ok_or(std::io::ErrorKind::NotFound)?;
        ///     let context = Context::open_by_id(device)?;
        ///     Ok(QueuePair::options(QpType::RC).create(&context)?)
        /// });
        /// let connection = connect.await?;
        /// println!("{}", connection.peer_addr()?);
        /// connection.close(CLOSE_DEADLINE).await?;
        /// # Ok(())
        /// # }
        /// ```
    }
    both {
        ///
        /// A RoCE or InfiniBand peer that disconnects (DREQ) waits for this side's reply (DREP).
        /// Any call that waits on this connection, such as [`closed`](Self::closed), or on another
        /// object of its [`Node`], sends it; so does [`Node::drive`].
        ///
        /// Dropping the connection aborts it: requests that have not completed are cancelled and
        /// their data may be lost, the peer is notified, and nothing is waited for.
        /// [`close`](Self::close) waits until the peer has replied.
        ///
        /// A siw device, or an rxe device before Linux 7.3, is removed only after every process has
        /// closed it. Calls that wait for completions detect the removal. If you only call
        /// [`closed`](Self::closed), which does not, call `Context::check_removal` from time to
        /// time. In a rootless container with a network namespace of its own, nothing detects the
        /// removal.
    }
    #[derive(Debug)]
    pub struct CmConnection<Q> {
        // Before the id: where destroying the id blocks, its executor drops the queue pair last.
        queue_pair: Arc<Q>,
        established: Established,
    }
}

impl<Q> CmConnection<Q> {
    pub(super) fn new(established: Established, queue_pair: Arc<Q>) -> Self {
        Self {
            queue_pair,
            established,
        }
    }

    pub(super) fn established(&self) -> &Established {
        &self.established
    }

    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &Q {
        &self.queue_pair
    }

    /// The id, by which to query its device, addresses, GIDs and path records.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.established.id.id()
    }

    /// The local address.
    ///
    /// # Errors
    /// [`Stage::Bind`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_local_addr")]
    pub fn local_addr(&self) -> Result<CmAddr> {
        self.established.local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// [`Stage::Bind`]: those of [`IdHandle::addresses`].
    #[doc(alias = "rdma_get_peer_addr")]
    pub fn peer_addr(&self) -> Result<CmAddr> {
        self.established.peer_addr()
    }

    /// On the connecting side, the private data of the peer's reply, as
    /// [`Event::private_data`](rdmacm_core::Event::private_data) returns it. The accepting side
    /// finds the peer's private data in [`Incoming::private_data`](super::Incoming::private_data).
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        &self.established.private_data
    }

    /// The parameters of the peer's queue pair, from its request or reply; `None` if the event had
    /// none.
    #[must_use]
    pub fn peer(&self) -> Option<ConnInfo> {
        self.established.peer
    }

    /// Moves the connection to another node, with the events that were not read.
    ///
    /// # Errors
    /// [`Stage::Migrate`]: the kernel refused, and the connection is where it was.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&mut self, to: &Node) -> Result<()> {
        let attempt = self.attempt(Deadline::Never);
        let migrated = self.established.id.migrate(&to.event_loop);
        migrated.map_err(|error| attempt.fail_on(self.id(), Stage::Migrate, error))
    }

    pub(super) fn attempt(&self, deadline: Deadline) -> Attempt {
        self.established.attempt(deadline)
    }

    waits! {
        /// Waits until the connection is closed, and returns why: the peer disconnected or is
        /// lost, or the device was removed. Failed requests are not reported here; they appear in
        /// the completion queues. Any number of callers may wait.
        ///
        /// # Errors
        /// [`Cause::Deadline`](crate::Cause::Deadline): it is still open.
        pub fn closed(&self, deadline: impl Into<Deadline>) -> Result<CloseReason> {
            self.established.id.event_loop() => async {
                let attempt = self.attempt(deadline.into());
                let closed = self.established.closed(&attempt).await;
                closed.map_err(|cause| attempt.fail_on(self.id(), Stage::Closed, cause))
            }
        }
    }

    waits! {
        /// Closes the connection: cancels the requests that have not completed, disconnects, and
        /// waits until the peer has replied. Cancelled requests complete as flushed, and their
        /// data may not arrive: wait for the completions of your sends first (`next_sent`).
        /// [`CLOSE_DEADLINE`](crate::CLOSE_DEADLINE) is a good deadline.
        awaited {
            ///
            /// If the future is dropped, the connection may be disconnected already.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`](crate::Cause::Deadline) if the peer did not reply in time,
            /// [`Cause::Event`](crate::Cause::Event) if the kernel gave up. Dropping the
            /// connection ends it in any case.
            #[doc(alias = "rdma_disconnect")]
        }
        pub fn close(&self, deadline: impl Into<Deadline>) -> Result<()> {
            self.established.id.event_loop() => async {
                let attempt = self.attempt(deadline.into());
                self.established.close(&attempt).await
            }
        }
    }
}
