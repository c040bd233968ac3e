//! Connecting.

use std::time::Duration;

use rdmacm_addrinfo::AddrInfo;
use rdmacm_core::{CmAddr, ConnParam, Deadline, PortSpace};

use super::{Connection, Resolved};
use crate::error::Result;
use crate::hub::block_on;
#[cfg(feature = "verbs")]
use crate::messages::{Maker, MessageOptions, Messages};
use crate::mode::{Async, Blocking, Mode};
use crate::node::Node;
use crate::plan::Plan;
use crate::queue_pairs::QueuePairs;
use crate::reactor::Runtime;
use crate::retry::RetryPolicy;
use crate::steps::{Dial, Peer, Source, Way};

/// How to connect: to whom, from where, with what, for how long, how often.
///
/// Connecting goes all the way: it looks the name up,
/// tries its addresses in the system's order (the next one
/// [`STAGGER`](crate::STAGGER) after the one before or as soon as that has
/// failed, and the first that connects wins), resolves address and route, makes
/// a queue pair and connects it. [`resolve`](Self::resolve) stops before the
/// queue pair. Everything together has one deadline,
/// [`CONNECT_DEADLINE`](crate::CONNECT_DEADLINE) unless set.
#[derive(Debug)]
#[doc(alias = "rdma_connect")]
pub struct Connector<M> {
    peer: Peer,
    node: Option<Node<M>>,
    plan: Plan,
}

impl<M: Mode> Connector<M> {
    /// Connects to a node by name or address, and a service by name or port. The
    /// resolver alone is asked: who wants ibacm's paths as well resolves first, and
    /// connects by [`to_any`](Self::to_any).
    #[must_use]
    pub fn new(node: impl Into<String>, service: impl Into<String>) -> Self {
        Self::of(Peer::Name {
            node: node.into(),
            service: service.into(),
        })
    }

    /// Connects to an address.
    #[must_use]
    pub fn to(address: impl Into<CmAddr>) -> Self {
        Self::to_addresses([address])
    }

    /// Connects to the first that works of several addresses, raced in their
    /// order.
    #[must_use]
    pub fn to_addresses<A: Into<CmAddr>>(addresses: impl IntoIterator<Item = A>) -> Self {
        let ways = addresses.into_iter().map(|one| Way::from(one.into()));
        Self::over(ways.collect())
    }

    /// Connects to the first that works of several results of
    /// [`addrinfo::resolve`](crate::addrinfo::resolve), raced in their order.
    /// Those that RDMA does not reach, or by other queue pairs than reliable connected
    /// ones, are left out. What is known of the way is used: source, route, port
    /// space, and what the peer expects in front of the private data.
    #[must_use]
    pub fn to_any(candidates: &[AddrInfo]) -> Self {
        let reachable = candidates.iter().filter(|info| info.is_reachable());
        Self::over(reachable.filter_map(Way::of).collect())
    }

    pub(super) fn over(ways: Vec<Way>) -> Self {
        Self::of(Peer::Ways(ways))
    }

    fn of(peer: Peer) -> Self {
        Self {
            peer,
            node: None,
            plan: Plan::default(),
        }
    }

    /// On a node that others use too, instead of one of its own: with its event
    /// channel, resolver and offload.
    #[must_use]
    pub fn on(mut self, node: &Node<M>) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How long everything together may take.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Deadline>) -> Self {
        self.plan.deadline = deadline.into();
        self
    }

    /// Whether and when to try again. Otherwise there is one attempt.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.plan.retry = policy;
        self
    }

    /// How long to wait for one address before the next is tried as well.
    #[must_use]
    pub fn stagger(mut self, stagger: Duration) -> Self {
        self.plan.stagger = stagger;
        self
    }

    /// Starts from this address of this machine; a port of 0 leaves the port to
    /// the kernel. Addresses of another family cannot be reached from it.
    #[must_use]
    pub fn from_address(mut self, source: impl Into<CmAddr>) -> Self {
        self.plan.source = Source::Address(source.into());
        self
    }

    /// Starts from this network interface.
    #[must_use]
    pub fn from_interface(mut self, name: impl Into<String>) -> Self {
        self.plan.source = Source::Interface(name.into());
        self
    }

    /// Starts from this RDMA device.
    #[must_use]
    pub fn from_device(mut self, name: impl Into<String>) -> Self {
        self.plan.source = Source::Device(name.into());
        self
    }

    /// The port space of the peer's service, [`PortSpace::TCP`] unless set; results of
    /// [`addrinfo::resolve`](crate::addrinfo::resolve) have their own.
    #[must_use]
    #[doc(alias = "RDMA_PS_IB")]
    pub fn port_space(mut self, port_space: PortSpace) -> Self {
        self.plan.options.port_space = port_space;
        self
    }

    /// The type of service, see [`set_tos`](rdmacm_core::IdHandle::set_tos).
    #[must_use]
    pub fn tos(mut self, tos: u8) -> Self {
        self.plan.options.tos = Some(tos);
        self
    }

    /// How long the queue pair waits for an acknowledgement, see
    /// [`set_ack_timeout`](rdmacm_core::IdHandle::set_ack_timeout). On RoCE and
    /// InfiniBand it also shortens the connection manager's own timeouts.
    #[must_use]
    pub fn ack_timeout(mut self, exponent: u8) -> Self {
        self.plan.options.ack_timeout = Some(exponent);
        self
    }

    /// Shares the source's address and port with others that allow it.
    #[must_use]
    pub fn reuse_addr(mut self) -> Self {
        self.plan.options.reuse_addr = true;
        self
    }

    /// What to tell the peer, all at once: depths, retries, private data. The
    /// queue pair's number is filled in.
    #[must_use]
    pub fn param(mut self, param: ConnParam) -> Self {
        self.plan.param = param;
        self
    }

    /// Private data for the peer, see [`ConnParam::private_data`].
    ///
    /// # Errors
    /// [`PrivateDataTooLong`](rdmacm_core::Error::PrivateDataTooLong) for what no
    /// transport carries.
    pub fn private_data(mut self, data: &[u8]) -> Result<Self, rdmacm_core::Error> {
        self.plan.param = self.plan.param.private_data(data)?;
        Ok(self)
    }

    /// How the connection is to carry messages, for [`connect`](Self::connect).
    #[cfg(feature = "verbs")]
    #[must_use]
    pub fn messages(mut self, options: MessageOptions) -> Self {
        self.plan.messages = options;
        self
    }

    fn node(&self) -> Result<Node<M>> {
        self.node.clone().map_or_else(Node::open, Ok)
    }

    fn dial<'a>(&'a self, node: &'a Node<M>) -> Dial<'a> {
        Dial {
            hub: &node.hub,
            directory: &node.directory,
            peer: &self.peer,
            plan: &self.plan,
        }
    }

    async fn resolve_on(&self, node: &Node<M>) -> Result<Resolved<M>> {
        let routed = self.dial(node).resolve().await?;
        Ok(Resolved::new(routed, self.plan.clone()))
    }

    async fn connect_through<P: QueuePairs>(
        &self,
        node: &Node<M>,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, M>> {
        let (established, queue_pair) = self.dial(node).connect(&queue_pairs).await?;
        Ok(Connection::new(established, queue_pair))
    }

    #[cfg(feature = "verbs")]
    async fn connect_messages(&self, node: &Node<M>) -> Result<Connection<Messages, M>> {
        let maker = Maker::new(&node.hub, self.plan.messages);
        let connection = self.connect_through(node, maker).await?;
        connection.queue_pair().traffic().nudge();
        Ok(connection.carrying_messages())
    }
}

impl Connector<Blocking> {
    /// Connects, ready to send and to receive: with a queue pair of a soft device, and
    /// receives posted before the peer hears of it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[cfg(feature = "verbs")]
    pub fn connect(self) -> Result<Connection<Messages, Blocking>> {
        let node = self.node()?;
        block_on(&node.hub, self.connect_messages(&node))
    }

    /// Resolves address and route.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed.
    pub fn resolve(self) -> Result<Resolved<Blocking>> {
        let node = self.node()?;
        block_on(&node.hub, self.resolve_on(&node))
    }

    /// Connects with a queue pair that is made once the device is known.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    pub fn connect_with<P: QueuePairs>(
        self,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, Blocking>> {
        let node = self.node()?;
        block_on(&node.hub, self.connect_through(&node, queue_pairs))
    }
}

impl<R: Runtime> Connector<Async<R>> {
    /// Connects, ready to send and to receive: with a queue pair of a soft device, and
    /// receives posted before the peer hears of it. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    #[cfg(feature = "verbs")]
    pub async fn connect(self) -> Result<Connection<Messages, Async<R>>> {
        let node = self.node()?;
        self.connect_messages(&node).await
    }

    /// Resolves address and route. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed.
    pub async fn resolve(self) -> Result<Resolved<Async<R>>> {
        let node = self.node()?;
        self.resolve_on(&node).await
    }

    /// Connects with a queue pair that is made once the device is known. Dropping
    /// the future cancels it: id and queue pair are gone then, and a peer that
    /// was asked already is told.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; nothing is left then.
    pub async fn connect_with<P: QueuePairs>(
        self,
        queue_pairs: P,
    ) -> Result<Connection<P::QueuePair, Async<R>>> {
        let node = self.node()?;
        self.connect_through(&node, queue_pairs).await
    }
}
