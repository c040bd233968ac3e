//! How to listen.

use rdmacm_core::{CmAddr, PortSpace};

use super::Listener;
use crate::error::Result;
use crate::id_options::IdOptions;
#[cfg(feature = "verbs")]
use crate::messages::MessageOptions;
use crate::mode::Mode;
use crate::node::Node;

/// How many requests wait where the caller does not say.
const ROOM: usize = 1024;

/// How to listen.
#[derive(Debug)]
pub struct ListenerOptions<M> {
    pub(super) node: Option<Node<M>>,
    pub(super) id: IdOptions,
    pub(super) backlog: u32,
    pub(super) room: usize,
    #[cfg(feature = "verbs")]
    pub(super) messages: MessageOptions,
}

impl<M: Mode> ListenerOptions<M> {
    pub(super) fn new() -> Self {
        Self {
            node: None,
            id: IdOptions::default(),
            // The kernel's maximum.
            backlog: 0,
            room: ROOM,
            #[cfg(feature = "verbs")]
            messages: MessageOptions::new(),
        }
    }

    /// On a node that others use too, instead of one of its own.
    #[must_use]
    pub fn on(mut self, node: &Node<M>) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How many requests the kernel keeps that nobody has read; it drops more
    /// silently. 0, which it is unless set, means the most the kernel allows
    /// (`net.rdma_ucm.max_backlog`, 1024 unless changed); on iWARP that takes
    /// some memory and, on slow machines, some milliseconds.
    #[must_use]
    pub fn backlog(mut self, requests: u32) -> Self {
        self.backlog = requests;
        self
    }

    /// How many requests wait to be accepted once they are read; more are
    /// rejected at once, as "consumer defined", which a
    /// [`RetryPolicy`](crate::RetryPolicy) does not take for something that passes.
    /// 1024 unless set; 0 rejects everyone.
    #[must_use]
    pub fn queue(mut self, requests: usize) -> Self {
        self.room = requests;
        self
    }

    /// The port space to listen in, [`PortSpace::TCP`] unless set: peers of another one
    /// find no listener on InfiniBand and RoCE, whose services it is part of.
    #[must_use]
    #[doc(alias = "RDMA_PS_IB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.id.port_space = port_space;
        self
    }

    /// Shares the address and port with ids that allow it too and do not listen.
    #[must_use]
    pub fn reuse_addr(mut self) -> Self {
        self.id.reuse_addr = true;
        self
    }

    /// Leaves IPv4 peers of an IPv6 wildcard address alone.
    #[must_use]
    pub fn v6_only(mut self) -> Self {
        self.id.v6_only = true;
        self
    }

    /// The type of service of accepted connections, see
    /// [`set_tos`](rdmacm_core::IdHandle::set_tos).
    #[must_use]
    pub fn tos(mut self, tos: u8) -> Self {
        self.id.tos = Some(tos);
        self
    }

    /// How long the queue pairs of accepted connections wait for an
    /// acknowledgement, see
    /// [`set_ack_timeout`](rdmacm_core::IdHandle::set_ack_timeout).
    #[must_use]
    pub fn ack_timeout(mut self, exponent: u8) -> Self {
        self.id.ack_timeout = Some(exponent);
        self
    }

    /// How accepted connections are to carry messages, unless
    /// [`Incoming::messages`](super::super::Incoming::messages) says otherwise.
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn messages(mut self, options: MessageOptions) -> Self {
        self.messages = options;
        self
    }

    /// Listens, see [`Listener::bind`].
    ///
    /// # Errors
    /// Those of [`Listener::bind`].
    pub fn bind<A>(self, address: A) -> Result<Listener<M>>
    where
        A: TryInto<CmAddr>,
    {
        Listener::open(self, address)
    }
}
