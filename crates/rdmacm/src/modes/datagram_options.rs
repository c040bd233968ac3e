//! How to open a datagram socket.

use rdmacm_core::{CmAddr, Deadline, Error as CmError, PortSpace, UdParam};

use super::{DatagramSocket, Node};
use crate::connect::PeerAddr;
use crate::datagrams::{DatagramConfig, DatagramPeer, Filter, resolve_peer};
use crate::error::{Cause, Error, Result};
use crate::retry::RetryPolicy;
use crate::stage::Stage;

/// The length of the private data of a reply, in bytes. Source: IBTA Vol 1 §12.11.
const MAX_REPLY: usize = 136;

/// How to open a [`DatagramSocket`].
///
/// Without receive or send requests it is refused: [`Stage::QueuePair`], with an error of kind
/// [`InvalidInput`](std::io::ErrorKind::InvalidInput).
#[derive(Clone, Debug)]
pub struct DatagramOptions {
    node: Option<Node>,
    config: DatagramConfig,
}

impl Default for DatagramOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl DatagramOptions {
    /// The same as [`DatagramSocket::options`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            node: None,
            config: DatagramConfig::default(),
        }
    }

    /// Uses this node. By default the socket opens a node of its own.
    #[must_use]
    pub fn with_node(mut self, node: &Node) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How many datagrams may arrive before the first of them is received, one or more, 32 by
    /// default. Further ones are lost. A datagram that was received counts for as long as it is
    /// kept. Memory for all of them, of the MTU and 40 bytes each, is registered and pinned.
    #[must_use]
    #[doc(alias = "max_recv_wr")]
    pub fn receives(mut self, datagrams: u32) -> Self {
        self.config.receives = datagrams;
        self
    }

    /// How many datagrams may be in flight, one or more, 32 by default. Further ones wait for
    /// those.
    #[must_use]
    #[doc(alias = "max_send_wr")]
    pub fn sends(mut self, datagrams: u32) -> Self {
        self.config.sends = datagrams;
        self
    }

    /// Whether and when to repeat a request to a peer that does not listen yet or could not be
    /// reached. There is one attempt by default.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.config.retry = policy;
        self
    }

    /// The port space, [`PortSpace::UDP`] by default.
    #[must_use]
    #[doc(alias = "RDMA_PS_UDP", alias = "RDMA_PS_IPOIB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.config.id.port_space = port_space;
        self
    }

    /// The type of service of paths that are resolved, see
    /// [`set_tos`](rdmacm_core::IdHandle::set_tos).
    #[must_use]
    #[doc(alias = "RDMA_OPTION_ID_TOS", alias = "rdma_set_option")]
    pub fn tos(mut self, tos: u8) -> Self {
        self.config.id.tos = Some(tos);
        self
    }

    /// Private data of requests that resolve a peer: at most 180 bytes by IP address.
    ///
    /// # Errors
    /// [`Stage::Connect`], with [`PrivateDataTooLong`](CmError::PrivateDataTooLong) for more than
    /// any transport transmits. More than a request transmits is refused when it is sent.
    pub fn request_data(mut self, private_data: &[u8]) -> Result<Self> {
        let param = self.config.request.private_data(private_data);
        self.config.request = param.map_err(|error| Error::new(Stage::Connect, error.into()))?;
        Ok(self)
    }

    /// Private data of replies to peers that resolve this socket: at most 136 bytes.
    ///
    /// # Errors
    /// [`Stage::Accept`], with [`PrivateDataTooLong`](CmError::PrivateDataTooLong).
    pub fn reply_data(mut self, private_data: &[u8]) -> Result<Self> {
        let param = reply_param(self.config.reply, private_data);
        self.config.reply = param.map_err(|error| Error::new(Stage::Accept, error.into()))?;
        Ok(self)
    }

    /// Which peers may resolve this socket, by the private data of their request: 180 bytes,
    /// with zeros after what they have sent. By default all may; others are rejected. It runs
    /// on the thread that waits on the socket, so it must not block. A peer that knows the
    /// number of the queue pair can send without resolving it.
    #[must_use]
    pub fn accept_if(mut self, accepts: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        self.config.filter = Filter::new(accepts);
        self
    }

    /// Opens the socket on the device of an address, see [`DatagramSocket::bind`].
    ///
    /// # Errors
    /// Those of [`DatagramSocket::bind`].
    pub fn bind<A>(self, address: A) -> Result<DatagramSocket>
    where
        A: TryInto<CmAddr>,
    {
        let node = self.open_node()?;
        DatagramSocket::open(node, self.config, address)
    }

    fn open_node(&self) -> Result<Node> {
        self.node.clone().map_or_else(Node::open, Ok)
    }

    pub(super) async fn connect_on(
        self,
        node: Node,
        peer: PeerAddr,
        deadline: Deadline,
    ) -> Result<(DatagramSocket, DatagramPeer)> {
        let Node {
            event_loop,
            resolver,
        } = &node;
        let resolving = resolve_peer(event_loop, resolver, &peer, &self.config, None, deadline);
        let resolved = resolving.await?;
        let source = resolved
            .source
            .ok_or_else(|| Error::new(Stage::Bind, Cause::NoAddress))?;
        let socket = DatagramSocket::open(node, self.config, source.with_port(0))?;
        Ok((socket, resolved.peer))
    }

    waits_on_node! {
        /// Resolves a peer and opens a socket for it, see [`DatagramSocket::connect`].
        ///
        /// # Errors
        /// Those of [`DatagramSocket::connect`].
        pub fn connect(
            self,
            peer: impl Into<PeerAddr>,
            deadline: impl Into<Deadline>
        ) -> Result<(DatagramSocket, DatagramPeer)> {
            let node = self.open_node();
            self.connect_on(node.clone(), peer.into(), deadline.into())
        }
    }
}

fn reply_param(param: UdParam, private_data: &[u8]) -> rdmacm_core::Result<UdParam> {
    if private_data.len() > MAX_REPLY {
        return Err(CmError::PrivateDataTooLong {
            length: private_data.len(),
            limit: MAX_REPLY,
        });
    }
    param.private_data(private_data)
}
