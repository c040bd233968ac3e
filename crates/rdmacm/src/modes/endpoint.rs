//! An id with a queue pair of the caller's options.

use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::ConnParam;
use rdmacm_verbs::{PostError, QpOptions, QueuePair, SgList, WorkId};

use super::{CmConnection, Connector, Incoming, Node, Resolved};
use crate::endpoint::{check, create_queue_pair, post_receive};
use crate::error::Result;
#[cfg(doc)]
use crate::stage::Stage;

by_mode! {
    /// A resolved peer and a queue pair for it, created with the caller's [`QpOptions`].
    ///
    /// The queue pair is in INIT: memory that is [posted](Self::post_receive) now receives the
    /// peer's first messages. [Connected](Self::connect), it is a [`CmConnection`] of that queue
    /// pair.
    ///
    /// On iWARP the connecting side sends first. siw sends its MPA reply before it watches the
    /// socket for data, so a message that arrives in between is processed only when the next one
    /// arrives: a client that sends one message and waits should send something more, such as an
    /// empty write. [`Connection`](super::Connection) does that by itself.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::Endpoint;
        /// use rdmacm::addrinfo::{Hints, resolve};
        /// use rdmacm::core::{ConnParam, QpType};
        /// use rdmacm::verbs::QueuePair;
        ///
        /// let candidates = resolve("storage-7", "7471", &Hints::rc())?;
        /// let info = candidates.first().ok_or("no address")?;
        /// let options = QueuePair::options(QpType::RC).with_completion_channels();
        /// let endpoint = Endpoint::new(info, &options)?;
        /// let buffer = endpoint.queue_pair().protection_domain().allocate(16)?;
        /// endpoint.post_receive(buffer)?;
        /// let connection = endpoint.connect(ConnParam::new())?;
        /// let mut message = connection.queue_pair().protection_domain().allocate(16)?;
        /// message.fill(7);
        /// connection.post_send(message)?;
        /// let sent = connection.next_sent(Duration::from_secs(1))?;
        /// let received = connection.next_received(Duration::from_secs(1))?;
        /// println!("{} bytes", received.result()?.bytes);
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::addrinfo::Hints;
        /// use rdmacm::core::{ConnParam, QpType};
        /// use rdmacm::tokio::{Endpoint, Node};
        /// use rdmacm::verbs::QueuePair;
        ///
        /// let node = Node::open()?;
        /// let candidates = node.resolve("storage-7", "7471", &Hints::rc()).await?;
        /// let info = candidates.first().ok_or("no address")?;
        /// let options = QueuePair::options(QpType::RC).with_completion_channels();
        /// let endpoint = Endpoint::new(info, &options).await?;
        /// let buffer = endpoint.queue_pair().protection_domain().allocate(16)?;
        /// endpoint.post_receive(buffer)?;
        /// let connection = endpoint.connect(ConnParam::new()).await?;
        /// let received = connection.next_received(Duration::from_secs(1)).await?;
        /// println!("{} bytes", received.result()?.bytes);
        /// # Ok(())
        /// # }
        /// ```
    }
    #[derive(Debug)]
    #[must_use = "dropping it destroys the id"]
    #[doc(alias = "rdma_create_ep", alias = "rdma_destroy_ep")]
    pub struct Endpoint {
        queue_pair: QueuePair,
        resolved: Resolved,
    }
}

/// A peer that requests a connection, and a queue pair for it: see [`Endpoint::from_incoming`].
#[derive(Debug)]
#[must_use = "dropping it rejects the peer"]
#[doc(alias = "rdma_create_ep", alias = "rdma_destroy_ep")]
pub struct IncomingEndpoint {
    queue_pair: QueuePair,
    incoming: Incoming,
}

impl Endpoint {
    waits_on_node! {
        /// Resolves a result of [`addrinfo`](crate::addrinfo) on a [`Node`](crate::Node) of its own,
        /// and creates a queue pair on the device that leads there. To share a node, resolve with a
        /// [`Connector`], and take the result to [`from_resolved`](Self::from_resolved).
        awaited {
            /// Dropping the future cancels it.
        }
        both {
            ///
            /// # Errors
            /// [`Error`](crate::Error), with the stage that failed; [`Stage::QueuePair`] if
            /// objects of the options are of another device, and for a result that is not for
            /// reliable connections.
            #[doc(alias = "rdma_create_ep")]
        }
        pub fn new(info: &AddrInfo, options: &QpOptions) -> Result<Self> {
            let node = Node::open();
            async {
                check(info)?;
                let connector = Connector::new(info).with_node(&node);
                Self::from_resolved(connector.resolve_on(&node).await?, options)
            }
        }
    }

    /// As [`new`](Self::new), for a peer that a [`Connector`] has resolved.
    ///
    /// # Errors
    /// [`Stage::QueuePair`].
    pub fn from_resolved(resolved: Resolved, options: &QpOptions) -> Result<Self> {
        let queue_pair = create_queue_pair(resolved.event_loop(), resolved.id(), options)?;
        Ok(Self {
            queue_pair,
            resolved,
        })
    }

    /// As [`new`](Self::new), for a connect request that a [`Listener`](super::Listener) has
    /// received.
    ///
    /// # Errors
    /// [`Stage::QueuePair`]; the peer is rejected then.
    pub fn from_incoming(incoming: Incoming, options: &QpOptions) -> Result<IncomingEndpoint> {
        let queue_pair = create_queue_pair(incoming.event_loop(), incoming.id(), options)?;
        Ok(IncomingEndpoint {
            queue_pair,
            incoming,
        })
    }

    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    /// The resolved peer.
    pub fn peer(&self) -> &Resolved {
        &self.resolved
    }

    /// Posts memory to receive a message into, before the peer can send one: to the queue
    /// pair, or to the shared queue that it receives from.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        post_receive(&self.queue_pair, memory)
    }

    waits! {
        /// Connects. `param` has the parameters of the connect request; the number of the queue
        /// pair is filled in.
        awaited {
            /// Dropping the future cancels the attempt.
        }
        both {
            ///
            /// # Errors
            /// Those of [`Resolved::connect_on`].
            #[doc(alias = "rdma_connect")]
        }
        pub fn connect(self, param: ConnParam) -> Result<CmConnection<QueuePair>> {
            self.resolved.event_loop() => self.resolved.param(param).connect_as(self.queue_pair)
        }
    }
}

impl IncomingEndpoint {
    /// The queue pair.
    #[must_use]
    pub fn queue_pair(&self) -> &QueuePair {
        &self.queue_pair
    }

    /// The connect request.
    pub fn request(&self) -> &Incoming {
        &self.incoming
    }

    /// Posts memory to receive a message into, before the peer can send one: to the queue
    /// pair, or to the shared queue that it receives from.
    ///
    /// # Errors
    /// Those of [`QueuePair::post_receive`].
    #[doc(alias = "rdma_post_recv", alias = "rdma_post_recvv")]
    pub fn post_receive(&self, memory: impl Into<SgList>) -> Result<WorkId, PostError<SgList>> {
        post_receive(&self.queue_pair, memory)
    }

    /// Rejects the peer, with private data.
    ///
    /// # Errors
    /// Those of [`Incoming::reject`].
    #[doc(alias = "rdma_reject")]
    pub fn reject(self, private_data: &[u8]) -> Result<()> {
        self.incoming.reject(private_data)
    }

    waits! {
        /// Accepts the peer. `param` has the parameters of the reply; the number of the queue pair
        /// is filled in.
        awaited {
            /// Dropping the future rejects the peer, or disconnects it if it was accepted already.
        }
        both {
            ///
            /// # Errors
            /// Those of [`Incoming::accept_on`].
            #[doc(alias = "rdma_accept")]
        }
        pub fn accept(self, param: ConnParam) -> Result<CmConnection<QueuePair>> {
            self.incoming.event_loop() => self.incoming.param(param).accept_as(self.queue_pair)
        }
    }
}
