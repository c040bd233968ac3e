//! The context of connectors and listeners.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use rdmacm_addrinfo::AddrInfoResolver;
#[cfg(feature = "verbs")]
use rdmacm_core::Deadline;
use rdmacm_core::RdmaDevice;

use super::NodeOptions;
use crate::error::{Error, Result};
use crate::event_loop::{EventLoop, drive};
use crate::stage::Stage;
#[cfg(feature = "verbs")]
use crate::stream::wait_for_dropped_streams;

by_mode! {
    /// The context that connectors and listeners share: an event channel, the event loop that reads
    /// it, a name resolver, and an executor for blocking calls. The event loop has no thread:
    /// whichever call waits on the node runs it.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::{Connector, Listener, Node};
        ///
        /// let node = Node::open()?;
        /// let listener = Listener::options().with_node(&node).bind("10.1.0.7:7471")?;
        /// let connection = Connector::new("storage-7:7471").with_node(&node).connect()?;
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use rdmacm::tokio::{Connector, Listener, Node};
        ///
        /// let node = Node::open()?;
        /// let listener = Listener::options().with_node(&node).bind("10.1.0.7:7471")?;
        /// let connection = Connector::new("storage-7:7471").with_node(&node).connect().await?;
        /// # Ok(())
        /// # }
        /// ```
    }
    both {
        ///
        /// A clone is the same node. A connector or listener without a node opens one of its own. The
        /// node stays open until the last of its clones, connectors, listeners and connections is
        /// dropped.
        ///
        /// All descriptors are closed by `exec`. After `fork`, the child must open a node of its own:
        /// what it has inherited fails there, and dropping it changes nothing for the parent. A
        /// signal handler ends no call.
    }
    #[derive(Clone)]
    #[doc(alias = "rdma_event_channel", alias = "rdma_create_event_channel")]
    pub struct Node {
        pub(crate) event_loop: Arc<EventLoop>,
        pub(crate) resolver: Arc<AddrInfoResolver>,
    }
}

impl Node {
    by_mode! {
        /// Opens the connection manager.
        blocking {}
        awaited {
            /// Call it within the runtime; elsewhere it fails with
            /// [`Cause::Runtime`](crate::Cause::Runtime), and without the feature `tokio` always:
            /// then use [`options`](Self::options) with a runtime. The node belongs to this
            /// runtime: tasks of another one may wait on it as well, as long as this one runs. A
            /// current-thread runtime runs only inside `block_on`; while it does not run, waits of
            /// other runtimes, and their deadlines, do not end. Once it has shut down, each wait
            /// fails with `ECANCELED`. While tokio's runtime shuts down, a wait with a deadline in
            /// another one may panic, as tokio's timers do.
            ///
            /// # Panics
            /// If tokio's runtime was built without `enable_io`. Without `enable_time`, calls panic
            /// that wait with a deadline or for a time of their own, as listeners and keep-alives do,
            /// and perhaps other calls beside them.
        }
        both {
            ///
            /// # Errors
            /// [`Stage::Open`]: `/dev/infiniband/rdma_cm` cannot be opened, or its descriptor cannot
            /// be watched. A missing device node is waited for, up to five seconds
            /// ([`ChannelOptions::device_node_timeout`](rdmacm_core::ChannelOptions::device_node_timeout)).
        }
        pub fn open() -> Result<Self> {
            Self::options().open()
        }
    }

    /// Options to open a node with.
    #[must_use]
    pub fn options() -> NodeOptions {
        NodeOptions::new()
    }

    pub(crate) fn new(event_loop: Arc<EventLoop>, resolver: AddrInfoResolver) -> Self {
        Self {
            event_loop,
            resolver: Arc::new(resolver),
        }
    }

    /// The RDMA devices of the node's host.
    ///
    /// # Errors
    /// [`Stage::ListDevices`]: neither netlink nor sysfs is available.
    #[doc(alias = "rdma_get_devices")]
    pub fn rdma_devices(&self) -> Result<Vec<RdmaDevice>> {
        let devices = self.event_loop.channel().rdma_devices();
        devices.map_err(|error| Error::new(Stage::ListDevices, error.into()))
    }

    #[cfg(feature = "verbs")]
    waits! {
        /// Waits until the peers' devices have acknowledged what the node's dropped
        /// [streams](super::RdmaStream) had written, or the streams were given up: for example before
        /// the process exits, with which such writes are lost. That includes streams that are dropped
        /// meanwhile. It reports no lost write: [`close`](super::RdmaStream::close) does.
        ///
        /// # Errors
        /// [`Stage::Close`] with [`Cause::Deadline`](crate::Cause::Deadline) if there are such
        /// streams at the deadline.
        pub fn wait_for_dropped_streams(&self, deadline: impl Into<Deadline>) -> Result<()> {
            &self.event_loop => wait_for_dropped_streams(&self.event_loop, deadline.into())
        }
    }

    waits! {
        /// Runs the event loop until it fails. Any call that waits on the node runs it as well, so
        /// this is for times when no call waits: it replies to peers that disconnect, and rejects
        /// connect requests beyond a listener's queue.
        awaited {
            /// If the only tasks that wait use tokio's or futures' read and write traits or poll a
            /// `Stream`, every event wakes all of them. While the node is driven, or another future
            /// waits on it, an event wakes only the tasks that it concerns. While the node is
            /// driven, a future that is neither polled nor dropped blocks no other future but those
            /// that wait for the same.
            ///
            /// Spawn it as a task of its own, which ends when it is aborted:
            ///
            /// ```no_run
            /// # #[cfg(feature = "tokio")]
            /// # fn example(node: &rdmacm::tokio::Node) {
            /// let node = node.clone();
            /// let driver = tokio::spawn(async move { node.drive().await });
            /// # driver.abort();
            /// # }
            /// ```
        }
        both {
            ///
            /// # Errors
            /// [`Stage::Drive`]: the event channel cannot be read or waited for. Call it again to
            /// go on.
        }
        pub fn drive(&self) -> Result<Infallible> {
            &self.event_loop => async {
                let driven = drive(&self.event_loop).await;
                driven.map_err(|error| Error::new(Stage::Drive, error.into()))
            }
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("event_loop", &self.event_loop)
            .finish_non_exhaustive()
    }
}
