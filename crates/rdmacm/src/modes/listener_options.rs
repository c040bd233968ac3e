//! How to listen.

use rdmacm_core::{CmAddr, PortSpace};

use super::{Listener, Node};
use crate::error::Result;
use crate::event_loop::DEFAULT_MAX_REQUESTS;
use crate::id_options::IdOptions;
use crate::listen::{ListenConfig, ListeningIds};

/// How to listen.
#[derive(Clone, Debug)]
pub struct ListenerOptions {
    node: Option<Node>,
    config: ListenConfig,
}

impl Default for ListenerOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl ListenerOptions {
    /// The same as [`Listener::options`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            node: None,
            config: ListenConfig {
                options: IdOptions::default(),
                // The kernel's maximum.
                backlog: 0,
                max_requests: DEFAULT_MAX_REQUESTS,
            },
        }
    }

    /// Uses this node. By default the listener opens a node of its own.
    #[must_use]
    pub fn with_node(mut self, node: &Node) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How many requests the kernel keeps that nobody has read. On InfiniBand and RoCE it drops
    /// further ones without a reply, on iWARP it rejects them. 0, the default, means the most the
    /// kernel allows (`net.rdma_ucm.max_backlog`, 1024 unless changed); on iWARP that takes some
    /// memory and, on slow machines, some milliseconds.
    #[must_use]
    pub fn backlog(mut self, requests: u32) -> Self {
        self.config.backlog = requests;
        self
    }

    /// How many requests that were read are queued; 1024 by default. Further ones are rejected
    /// at once, as "consumer defined", which a [`RetryPolicy`](crate::RetryPolicy) does not
    /// retry. 0 rejects all peers.
    #[must_use]
    pub fn queue(mut self, requests: usize) -> Self {
        self.config.max_requests = requests;
        self
    }

    /// The port space to listen in, [`PortSpace::TCP`] by default. On InfiniBand and RoCE it
    /// is part of the service: peers of another port space find no listener.
    #[must_use]
    #[doc(alias = "RDMA_PS_IB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.config.options.port_space = port_space;
        self
    }

    /// Shares the address and port with ids that allow it too and do not listen.
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

    /// Leaves out IPv4 peers of an IPv6 wildcard address.
    #[must_use]
    #[doc(
        alias = "RDMA_OPTION_ID_AFONLY",
        alias = "IPV6_V6ONLY",
        alias = "rdma_set_option"
    )]
    pub fn v6_only(mut self) -> Self {
        self.config.options.v6_only = true;
        self
    }

    /// The type of service of accepted connections, see
    /// [`set_tos`](rdmacm_core::IdHandle::set_tos). On RoCE and InfiniBand the connecting side
    /// decides, for both directions. siw ignores it.
    #[must_use]
    #[doc(alias = "RDMA_OPTION_ID_TOS", alias = "rdma_set_option")]
    pub fn tos(mut self, tos: u8) -> Self {
        self.config.options.tos = Some(tos);
        self
    }

    /// How long the queue pairs of accepted connections wait for an acknowledgement, as an
    /// exponent, see [`Connector::ack_timeout`](super::Connector::ack_timeout). By default the
    /// path of the connecting side decides. The connection manager's timeouts stay as they are.
    /// An exponent over 31 fails at [`Stage::Listen`](crate::Stage::Listen).
    #[must_use]
    #[doc(alias = "RDMA_OPTION_ID_ACK_TIMEOUT", alias = "rdma_set_option")]
    pub fn ack_timeout(mut self, exponent: u8) -> Self {
        self.config.options.ack_timeout = Some(exponent);
        self
    }

    /// Listens, see [`Listener::bind`].
    ///
    /// # Errors
    /// Those of [`Listener::bind`].
    pub fn bind<A>(self, address: A) -> Result<Listener>
    where
        A: TryInto<CmAddr>,
    {
        let node = self.node.map_or_else(Node::open, Ok)?;
        let ids = ListeningIds::bind(&node.event_loop, self.config, address)?;
        Ok(Listener::new(ids))
    }
}
