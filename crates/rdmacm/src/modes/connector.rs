//! How to connect.

use std::time::{Duration, Instant};

use rdmacm_core::{ChannelOptions, CmAddr, ConnParam, Deadline, EventChannel, PortSpace};

use super::{CmConnection, Node, Resolved};
use crate::connect::{ConnectAttempts, ConnectConfig, PeerAddr, SourceAddress};
use crate::error::{Error, Result};
use crate::queue_pair_factory::QueuePairFactory;
use crate::retry::RetryPolicy;
use crate::stage::Stage;

by_mode! {
    /// How to connect: the peer, the source, the private data, the deadline and retries.
    ///
    /// Connecting resolves the name and tries its addresses in the system's order. An attempt
    /// starts [`CONNECTION_ATTEMPT_DELAY`](crate::CONNECTION_ATTEMPT_DELAY) after the one before,
    /// or as soon as that one fails, and the first attempt that connects wins. Each attempt
    /// resolves the address and the route, creates a queue pair while the kernel resolves the route,
    /// and connects it; [`resolve`](Self::resolve) creates no queue pair. One deadline covers all of this,
    /// [`CONNECT_DEADLINE`](crate::CONNECT_DEADLINE) by default.
    ///
    blocking {
        /// ```no_run
        /// # #[cfg(feature = "verbs")]
        /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::{Connector, RetryPolicy};
        ///
        /// let connection = Connector::new("storage-7:7471")
        ///     .deadline(Duration::from_secs(3))
        ///     .retry(RetryPolicy::until_deadline())
        ///     .private_data(b"hello, version 1")?
        ///     .connect()?;
        /// # Ok(())
        /// # }
        /// ```
    }
    awaited {
        /// ```no_run
        /// # #[cfg(all(feature = "verbs", feature = "tokio"))]
        /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
        /// use std::time::Duration;
        /// use rdmacm::RetryPolicy;
        /// use rdmacm::tokio::Connector;
        ///
        /// let connection = Connector::new("storage-7:7471")
        ///     .deadline(Duration::from_secs(3))
        ///     .retry(RetryPolicy::until_deadline())
        ///     .private_data(b"hello, version 1")?
        ///     .connect()
        ///     .await?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// Dropping a future cancels the attempt: the id and the queue pair are destroyed, and a
        /// peer that has received the connect request is notified.
    }
    #[derive(Clone, Debug)]
    #[doc(alias = "rdma_connect")]
    pub struct Connector {
        peer: PeerAddr,
        node: Option<Node>,
        pub(super) config: ConnectConfig,
    }
}

impl Connector {
    /// A connector to a peer: `"storage-7:7471"`, `("storage-7", "7471")`, an address, several
    /// addresses, or results of [`addrinfo::resolve`](crate::addrinfo::resolve); see
    /// [`PeerAddr`].
    ///
    /// A name is resolved by the name resolver alone. To use the paths of ibacm, resolve first and
    /// pass the results.
    #[must_use]
    pub fn new(peer: impl Into<PeerAddr>) -> Self {
        Self {
            peer: peer.into(),
            node: None,
            config: ConnectConfig::default(),
        }
    }

    /// Uses the event channel, `AddrInfoResolver` and executor of this node. By default the
    /// connector opens a node of its own.
    #[must_use]
    pub fn with_node(mut self, node: &Node) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How long name resolution, all attempts and all retries may take together;
    /// [`CONNECT_DEADLINE`](crate::CONNECT_DEADLINE), 15 s, by default. That includes opening a
    /// node, if the connector has none.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.config.deadline = deadline.into();
        self
    }

    /// Whether and when to retry. There is one attempt by default.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.config.retry = policy;
        self
    }

    /// How long to wait for an attempt before also trying the next address (RFC 8305, Connection
    /// Attempt Delay); [`CONNECTION_ATTEMPT_DELAY`](crate::CONNECTION_ATTEMPT_DELAY), 250 ms, by
    /// default.
    #[must_use]
    pub fn attempt_delay(mut self, attempt_delay: Duration) -> Self {
        self.config.attempt_delay = attempt_delay;
        self
    }

    /// Connects from this address of this host. If its port is 0, the kernel chooses one. From a
    /// given port, the peer's addresses are tried one after the other instead of in parallel,
    /// unless [`reuse_addr`](Self::reuse_addr) is set; [`RetryPolicy::attempt_timeout`] limits each
    /// attempt. On iWARP the port stays in use until the kernel gives up a silent peer, which takes
    /// up to two minutes. Peer addresses of another address family are not reachable from this
    /// address.
    #[must_use]
    #[doc(alias = "rdma_bind_addr")]
    pub fn source_address(mut self, source: impl Into<CmAddr>) -> Self {
        self.config.source = SourceAddress::Address(source.into());
        self
    }

    /// Connects from an address of this network interface, by its name or an alternative name of
    /// up to 15 bytes: one of the destination's subnet, if there is one.
    #[must_use]
    pub fn source_interface(mut self, name: impl Into<String>) -> Self {
        self.config.source = SourceAddress::Interface(name.into());
        self
    }

    /// Connects from an address that this RDMA device serves, which includes the addresses of VLANs
    /// and bonds on its network interface. Prefers an address in the destination's subnet. Finding
    /// it takes a few commands for each address of this host.
    #[must_use]
    pub fn source_device(mut self, name: impl Into<String>) -> Self {
        self.config.source = SourceAddress::Device(name.into());
        self
    }

    /// The port space of the peer's service, [`PortSpace::TCP`] by default. Results of
    /// [`addrinfo::resolve`](crate::addrinfo::resolve) have their own.
    #[must_use]
    #[doc(alias = "RDMA_PS_IB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.config.options.port_space = port_space;
        self
    }

    /// The type of service, see [`set_tos`](rdmacm_core::IdHandle::set_tos).
    #[must_use]
    #[doc(alias = "RDMA_OPTION_ID_TOS", alias = "rdma_set_option")]
    pub fn tos(mut self, tos: u8) -> Self {
        self.config.options.tos = Some(tos);
        self
    }

    /// How long the queue pair waits for an acknowledgement: 4.096 µs × 2^`exponent`, at most 31,
    /// 0 without a limit. By default the kernel derives it from the path: on RoCE 17 (0.5 s), on
    /// Linux 6.1 19 (2.1 s). On RoCE it also replaces the path's life time in the connection
    /// manager's timeouts, of which 4.1 s a try remain. iWARP ignores it. An exponent over 31
    /// fails at [`Stage::Bind`].
    #[must_use]
    #[doc(alias = "RDMA_OPTION_ID_ACK_TIMEOUT", alias = "rdma_set_option")]
    pub fn ack_timeout(mut self, exponent: u8) -> Self {
        self.config.options.ack_timeout = Some(exponent);
        self
    }

    /// Shares the source's address and port with others that allow it.
    #[must_use]
    #[doc(
        alias = "RDMA_OPTION_ID_REUSEADDR",
        alias = "SO_REUSEADDR",
        alias = "rdma_set_option"
    )]
    pub fn reuse_addr(mut self) -> Self {
        self.config.options.reuse_addr = true;
        self
    }

    /// The parameters of the connect request, all at once: depths, retries, private data. The
    /// connector fills in the number of the queue pair.
    #[must_use]
    pub fn param(mut self, param: ConnParam) -> Self {
        self.config.param = param;
        self
    }

    /// Private data for the peer, see [`ConnParam::private_data`].
    ///
    /// # Errors
    /// [`Stage::Connect`], with
    /// [`PrivateDataTooLong`](rdmacm_core::Error::PrivateDataTooLong) for more than any
    /// transport transmits.
    pub fn private_data(mut self, data: &[u8]) -> Result<Self> {
        self.config.param = self.config.param.private_data(data).map_err(|error| {
            let peer = self.peer.0.target();
            Error::with_target(Stage::Connect, peer, Duration::ZERO, error.into())
        })?;
        Ok(self)
    }

    /// The node of this connector, or one that is opened within the deadline.
    pub(super) fn open_node(&mut self) -> Result<Node> {
        if let Some(node) = &self.node {
            return Ok(node.clone());
        }
        let longest = ChannelOptions::DEFAULT_DEVICE_NODE_TIMEOUT;
        let began = Instant::now();
        let left = self.config.deadline.until(began).map_or(longest, |until| {
            until.saturating_duration_since(began).min(longest)
        });
        let channel = EventChannel::options().device_node_timeout(left);
        let node = Node::options().channel(channel).open()?;
        // What is left of a duration counts by the node's clock.
        if let Deadline::After(limit) = &mut self.config.deadline {
            *limit = limit.saturating_sub(began.elapsed());
        }
        Ok(node)
    }

    pub(super) fn attempts<'a>(&'a self, node: &'a Node) -> ConnectAttempts<'a> {
        ConnectAttempts {
            event_loop: &node.event_loop,
            resolver: &node.resolver,
            peer: &self.peer.0,
            config: &self.config,
        }
    }

    pub(super) async fn resolve_on(&self, node: &Node) -> Result<Resolved> {
        let routed = self.attempts(node).resolve().await?;
        Ok(Resolved::new(routed, self.config.clone()))
    }

    waits_on_node! {
        /// Resolves address and route.
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed.
        #[doc(alias = "rdma_resolve_addr", alias = "rdma_resolve_route")]
        pub fn resolve(mut self) -> Result<Resolved> {
            let node = self.open_node();
            self.resolve_on(&node)
        }
    }

    waits_on_node! {
        /// Connects a queue pair that the factory creates once the device is known. A function
        /// from an id to a queue pair is a factory. If it needs the path records, use
        /// [`resolve`](Self::resolve) and [`Resolved::connect_on`]: the route may not be resolved
        /// yet, and may have none.
        ///
        /// # Errors
        /// [`Error`](crate::Error), with the stage that failed. The id and the queue pair are
        /// destroyed, on iWARP once TCP's handshake has ended
        /// ([`NodeOptions::max_handshakes`](crate::NodeOptions::max_handshakes)).
        #[doc(alias = "rdma_connect")]
        pub fn connect_with<F: QueuePairFactory>(
            mut self,
            factory: F
        ) -> Result<CmConnection<F::QueuePair>> {
            let node = self.open_node();
            async {
                let (established, queue_pair) = self.attempts(&node).connect(&factory).await?;
                Ok(CmConnection::new(established, queue_pair))
            }
        }
    }
}
