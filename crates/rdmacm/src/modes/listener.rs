//! Waiting for peers.

use std::fmt;

use rdmacm_core::{CmAddr, Deadline, IdHandle};

use super::{Incoming, IncomingRequests, ListenerOptions, Node};
use crate::error::Result;
use crate::event_loop::EventLoop;
use crate::listen::ListeningIds;
use crate::stop_handle::StopHandle;
#[cfg(doc)]
use crate::{error::Cause, stage::Stage};

by_mode! {
    /// Waits for connect requests on an address, or on all of them.
    ///
    /// While any thread or task waits for something of the same [`Node`], connect requests are read
    /// from the kernel and queued for [`accept`](Self::accept). Requests beyond the
    /// [queue](ListenerOptions::queue) are rejected at once. Requests that are not read stay in the
    /// kernel's backlog. If that is full, the kernel rejects further requests on iWARP; on
    /// InfiniBand and RoCE it drops them without a reply, and their senders try again after more
    /// than four seconds.
    ///
    /// Dropping the listener rejects the requests in its queue. Accepted connections are not
    /// affected.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> rdmacm::Result<()> {
        /// use rdmacm::Listener;
        ///
        /// let listener = Listener::bind("[::]:7471")?;
        /// for incoming in listener.incoming() {
        ///     // In a thread: a silent peer takes its time, and others go on.
        ///     std::thread::spawn(move || match incoming.and_then(|incoming| incoming.accept()) {
        ///         Ok(connection) => while let Ok(Some(message)) = connection.receive() {
        ///             println!("{} bytes", message.len());
        ///         },
        ///         // This peer failed, or there are no more: the loop ends by itself then.
        ///         Err(error) => eprintln!("{error}"),
        ///     });
        /// }
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> rdmacm::Result<()> {
        /// use rdmacm::core::Deadline;
        /// use rdmacm::tokio::Listener;
        ///
        /// let listener = Listener::bind("[::]:7471")?;
        /// loop {
        ///     let incoming = match listener.accept(Deadline::Never).await {
        ///         Ok(incoming) => incoming,
        ///         Err(error) if error.ends_listener() => return Err(error),
        ///         // It concerns one client. The listener goes on.
        ///         Err(error) => {
        ///             eprintln!("{error}");
        ///             continue;
        ///         }
        ///     };
        ///     tokio::spawn(async move {
        ///         let connection = incoming.accept().await?;
        ///         while let Some(message) = connection.receive().await? {
        ///             println!("{} bytes", message.len());
        ///         }
        ///         Ok::<_, rdmacm::Error>(())
        ///     });
        /// }
        /// # }
        /// ```
    }
    both {
        ///
        /// # siw
        /// If a TCP peer disconnects before the kernel's siw has accepted its connection, siw
        /// closes the listener's TCP socket, without an event; a port scan suffices. While a caller
        /// waits for a peer, the listener checks every two seconds whether its socket is open, and
        /// fails with [`Cause::ListenerSocketClosed`] if it is not; a listener for streams does not
        /// check while a handshake is in flight. A listener on a wildcard
        /// address fails once for each device on which this happens, and continues on the others.
        /// Destroying the id of such a listener would make the kernel use freed memory. So dropping
        /// the listener does not destroy the id, which keeps its port until the process ends. **The
        /// kernel destroys the id when the process ends, and may crash then**: to continue serving,
        /// listen on another port, and do not end the process. Devices of other drivers are not
        /// checked.
        #[doc(alias = "rdma_listen")]
    }
    pub struct Listener {
        ids: ListeningIds,
    }
}

impl Listener {
    by_mode! {
        /// Listens on an address: `10.1.0.7:7471`, `0.0.0.0:7471` for all IPv4 addresses,
        /// `[::]:7471` for all addresses of both families. The kernel chooses the port if it is 0.
        ///
        /// # Errors
        /// [`Cause::InvalidAddress`] for a text that is not an address;
        /// [`Cause::LoopbackAddress`] for an address such as `127.0.0.1`; [`Stage::Listen`] if the
        /// kernel refuses; [`Stage::Open`], unless the options have a node, if `/dev/infiniband/rdma_cm`
        /// cannot be opened
        blocking {
            /// ([`Node::open`]).
        }
        awaited {
            /// ([`Node::open`]), or the call is not made within the runtime.
        }
        #[doc(alias = "rdma_bind_addr")]
        pub fn bind<A>(address: A) -> Result<Self>
        where
            A: TryInto<CmAddr>,
        {
            Self::options().bind(address)
        }
    }

    /// Options to listen with.
    #[must_use]
    pub fn options() -> ListenerOptions {
        ListenerOptions::new()
    }

    pub(super) fn new(ids: ListeningIds) -> Self {
        Self { ids }
    }

    pub(super) fn event_loop(&self) -> &std::sync::Arc<EventLoop> {
        self.ids.event_loop()
    }

    pub(super) fn listening_ids(&self) -> &ListeningIds {
        &self.ids
    }

    /// The address it listens on, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.ids.address()
    }

    /// Its ids: two for `[::]`, one for each family, otherwise one.
    pub fn ids(&self) -> impl Iterator<Item = &IdHandle> {
        self.ids.ids()
    }

    /// Stops the listener from another thread or task. Callers that wait for a peer receive the
    /// requests that are queued, then [`Cause::Stopped`]. New requests are rejected when a call
    /// that waits on the node reads them, or at the latest when the listener is dropped.
    pub fn stop(&self) {
        self.ids.stop();
    }

    /// A handle that [stops](Self::stop) the listener from another thread or task. It does not keep
    /// the listener alive.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        self.ids.stop_handle()
    }

    /// Moves the listener to another node, with the requests that are queued, read or not.
    /// Peers that were accepted stay where they are.
    ///
    /// # Errors
    /// [`Stage::Migrate`]: the kernel refused, and the listener is where it was.
    #[doc(alias = "rdma_migrate_id")]
    pub fn migrate(&mut self, to: &Node) -> Result<()> {
        self.ids.migrate(&to.event_loop)
    }

    pub(super) async fn next_incoming(&self, deadline: Deadline) -> Result<Incoming> {
        self.ids.next_request(deadline).await.map(Incoming::new)
    }

    waits! {
        /// Waits for the next connect request. Any number of callers may wait; each request
        /// goes to one of them.
        blocking {
            ///
            /// ```no_run
            /// # fn example(listener: &rdmacm::Listener) -> Result<(), Box<dyn std::error::Error>> {
            /// use std::time::Duration;
            ///
            /// let incoming = listener.accept(Duration::from_secs(10))?;
            /// println!("from {}", incoming.peer_addr()?);
            /// # Ok(())
            /// # }
            /// ```
        }
        awaited {
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # use rdmacm::tokio::Listener;
            /// # #[cfg(feature = "tokio")]
            /// # async fn example(listener: &Listener) -> Result<(), Box<dyn std::error::Error>> {
            /// use std::time::Duration;
            ///
            /// let incoming = listener.accept(Duration::from_secs(10)).await?;
            /// println!("from {}", incoming.peer_addr()?);
            /// # Ok(())
            /// # }
            /// ```
            ///
            /// Dropping the future loses none.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`] if none came in time. [`Cause::Stopped`], and what
            /// [`Error::ends_listener`](crate::Error::ends_listener) is true for: no more
            /// requests come. After other errors, wait again.
            #[doc(alias = "rdma_get_request")]
        }
        pub fn accept(&self, deadline: impl Into<Deadline>) -> Result<Incoming> {
            self.event_loop() => self.next_incoming(deadline.into())
        }
    }

    by_mode! {
        /// Connect requests, one after another, until the listener is stopped.
        ///
        blocking {
            /// The iterator also yields errors, after which it goes on: the next item is the
            /// next request. After an error that [ends the
            /// listener](crate::Error::ends_listener), it yields `None`.
        }
        awaited {
            /// A `Stream` with the feature `stream`, which also yields errors, after which it
            /// goes on. After an error that [ends the listener](crate::Error::ends_listener), it
            /// ends.
        }
        both {
            #[must_use]
        }
        pub fn incoming(&self) -> IncomingRequests<'_> {
            IncomingRequests::new(self)
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("address", &self.local_addr())
            .finish_non_exhaustive()
    }
}
