//! Datagram sockets, blocking and awaited.

use std::marker::PhantomData;

use rdmacm_core::{CmAddr, Deadline, IdHandle, JoinFlags};
use rdmacm_verbs::SendOperation;

use super::address::{DatagramAddr, DatagramPeer};
use super::datagram::Datagram;
use super::open::{Open, open};
use super::options::{Choices, DatagramOptions};
use super::resolve::ask_any;
use crate::error::{Cause, Result, Target};
use crate::hub::block_on;
use crate::mode::{Async, Blocking, Mode};
use crate::node::Node;
use crate::reactor::Runtime;
use crate::step::Step;
use crate::steps::{Attempt, Peer};

/// A queue pair for datagrams on one RDMA device: it sends to any address and receives
/// from whoever sends, see the [module](super).
///
/// Peers that ask for its address and port (SIDR) are told where it is by whoever waits
/// on it: to receive, or for room to send.
///
/// It is over for good, with what has arrived received first, when its device goes or
/// its address becomes another device's ([`Cause::SocketOver`], [`Cause::Verbs`]), or
/// when a datagram cannot be sent ([`Cause::Completion`]), which on rxe is so if the
/// route to its destination has gone. A group that is lost
/// ([`Cause::GroupLost`]) does not end it.
///
/// Dropping it leaves its groups and forgets what is still to be sent:
/// [`flush`](Self::flush) waits for that.
#[derive(Debug)]
#[doc(alias = "IBV_QPT_UD", alias = "RDMA_PS_UDP")]
pub struct DatagramSocket<M> {
    open: Open,
    node: Node<M>,
    choices: Choices,
    mode: PhantomData<fn() -> M>,
}

impl<M: Mode> DatagramSocket<M> {
    /// Opens a socket on the device of an address: `10.1.0.7:7174`. Port 0 takes one of
    /// the kernel's choice.
    ///
    /// # Errors
    /// [`Cause::NotAnAddress`] for a text that is none; [`Step::Bind`] where the kernel
    /// refuses, and for a wildcard address, which is of no device, or iWARP's, which has
    /// no datagrams; [`Step::QueuePair`]; [`Step::Listen`].
    pub fn bind<A>(address: A) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        Self::options().bind(address)
    }

    /// Opens a socket with choices of the caller's.
    #[must_use]
    pub fn options() -> DatagramOptions<M> {
        DatagramOptions::new()
    }

    pub(super) fn open<A>(options: DatagramOptions<M>, address: A) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        let DatagramOptions { node, choices, .. } = options;
        let node = node.map_or_else(Node::open, Ok)?;
        let attempt = Attempt::new(&node.hub, None, Target::default());
        let address = address
            .try_into()
            .map_err(|_| attempt.fail(Step::Bind, Cause::NotAnAddress))?;
        Ok(Self {
            open: open(&attempt.at(address), address, &choices)?,
            node,
            choices,
            mode: PhantomData,
        })
    }

    /// The address it is bound to, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.open.address
    }

    /// The id: its device and GID can be asked for.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.open.id()
    }

    /// The number of its queue pair, by which peers send to it.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn qp_number(&self) -> u32 {
        self.open.traffic.queue_pair().number()
    }

    /// The queue key that it receives with.
    #[must_use]
    pub fn qkey(&self) -> u32 {
        self.open.local.qkey
    }

    /// Bytes of the longest datagram it sends or receives: the port's MTU when it was
    /// opened.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.open.longest
    }

    /// How long each later step that sends or receives may take, counted from its call.
    /// For ever, unless set.
    pub fn set_deadline(&self, deadline: impl Into<Deadline>) {
        self.open.traffic.set_deadline(deadline.into());
    }

    /// The next datagram, if one has arrived.
    ///
    /// # Errors
    /// Those of [`recv_from`](Self::recv_from) but for the deadline.
    pub fn try_recv_from(&self) -> Result<Option<Datagram>> {
        self.open.try_receive()
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// [`Step::LeaveMulticast`]: the socket is no member, or the kernel refused; it is
    /// none afterwards.
    #[doc(alias = "rdma_leave_multicast", alias = "ibv_detach_mcast")]
    pub fn leave_multicast(&self, group: impl Into<CmAddr>) -> Result<()> {
        let attempt = self.open.attempt(Deadline::Never);
        self.open.leave_group(&attempt, group.into())
    }

    async fn resolve_async(&self, peer: Peer, deadline: Deadline) -> Result<DatagramPeer> {
        let Node { hub, directory, .. } = &self.node;
        let source = self.open.address.with_port(0);
        let answered = ask_any(hub, directory, &peer, &self.choices, Some(source), deadline);
        Ok(answered.await?.peer)
    }

    async fn join_async(
        &self,
        group: CmAddr,
        flags: JoinFlags,
        deadline: Deadline,
    ) -> Result<DatagramAddr> {
        let attempt = self.open.attempt(deadline).at(group);
        self.open.join(&attempt, group, flags).await
    }
}

impl<M: Mode> DatagramOptions<M> {
    async fn connect_async(
        mut self,
        peer: Peer,
        deadline: Deadline,
    ) -> Result<(DatagramSocket<M>, DatagramPeer)> {
        let node = self.node.take().map_or_else(Node::open, Ok)?;
        let Node { hub, directory, .. } = &node;
        let answered = ask_any(hub, directory, &peer, &self.choices, None, deadline).await?;
        let source = answered.source.ok_or_else(|| {
            let attempt = Attempt::new(hub, None, peer.target());
            attempt.fail(Step::Bind, Cause::NoAddress)
        })?;
        let socket = self.on(&node).bind(source.with_port(0))?;
        Ok((socket, answered.peer))
    }
}

fn named(node: impl Into<String>, service: impl Into<String>) -> Peer {
    Peer::Name {
        node: node.into(),
        service: service.into(),
    }
}

fn at(address: impl Into<CmAddr>) -> Peer {
    Peer::Ways(vec![address.into().into()])
}

impl DatagramOptions<Blocking> {
    /// Asks a peer where it is, see [`DatagramSocket::connect`].
    ///
    /// # Errors
    /// Those of [`DatagramSocket::connect`].
    pub fn connect(
        self,
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<(DatagramSocket<Blocking>, DatagramPeer)> {
        let peer = named(node, service);
        let node = self.node.clone().map_or_else(Node::open, Ok)?;
        let connecting = self.on(&node).connect_async(peer, deadline.into());
        block_on(&node.hub, connecting)
    }
}

impl DatagramSocket<Blocking> {
    /// Asks a peer, by the name or address of its node and of its service, where its
    /// datagrams go to, and opens a socket on the device that leads there. Its addresses
    /// are asked as [`Connector`](crate::face::Connector) connects to them, and the
    /// first that answers counts.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; [`Step::Connect`] where the peer
    /// serves nothing there, or did not answer in time.
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub fn connect(
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<(Self, DatagramPeer)> {
        Self::options().connect(node, service, deadline)
    }

    /// Asks a peer, by the name or address of its node and of its service, where its
    /// datagrams go to.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub fn resolve(
        &self,
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramPeer> {
        let resolving = self.resolve_async(named(node, service), deadline.into());
        block_on(&self.node.hub, resolving)
    }

    /// Asks a peer by its address.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub fn resolve_addr(
        &self,
        address: impl Into<CmAddr>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramPeer> {
        let resolving = self.resolve_async(at(address), deadline.into());
        block_on(&self.node.hub, resolving)
    }

    /// Sends a copy of a datagram, which may be empty, to a peer or a group. Waits while
    /// as many are under way as [there may be](DatagramOptions::sends), but not until it
    /// was sent; whether it arrives nobody tells.
    ///
    /// # Errors
    /// [`Cause::DatagramTooLong`]: nothing was sent. [`Cause::Verbs`] where the kernel
    /// finds no way to the address, or the device has gone. [`Cause::Deadline`]: there
    /// was no room in time, and nothing was sent. Otherwise the socket is over.
    #[doc(alias = "rdma_post_ud_send", alias = "ibv_create_ah")]
    pub fn send_to(&self, datagram: &[u8], to: &DatagramAddr) -> Result<()> {
        let sending = self.open.send(SendOperation::Send, datagram, to);
        block_on(&self.node.hub, sending)
    }

    /// The same, with a word for the receiver.
    ///
    /// # Errors
    /// Those of [`send_to`](Self::send_to).
    #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
    pub fn send_to_with_immediate(
        &self,
        datagram: &[u8],
        to: &DatagramAddr,
        immediate: u32,
    ) -> Result<()> {
        let operation = SendOperation::SendWithImmediate(immediate);
        block_on(&self.node.hub, self.open.send(operation, datagram, to))
    }

    /// Waits for the next datagram. Any number of threads may; each datagram goes to one
    /// of them.
    ///
    /// # Errors
    /// [`Cause::Deadline`]: none came in time. [`Cause::GroupLost`], once for each group.
    /// Otherwise the socket is over.
    #[doc(alias = "rdma_post_recv", alias = "rdma_get_recv_comp")]
    pub fn recv_from(&self) -> Result<Datagram> {
        block_on(&self.node.hub, self.open.receive())
    }

    /// Waits until the device has sent all datagrams so far.
    ///
    /// # Errors
    /// [`Cause::Deadline`]; otherwise the socket is over.
    #[doc(alias = "rdma_get_send_comp")]
    pub fn flush(&self) -> Result<()> {
        block_on(&self.node.hub, self.open.flush())
    }

    /// Joins a multicast group, and receives what is sent to it from then on. The address
    /// is where to send to it. On RoCE v2 the kernel joins IPv4 groups alone.
    ///
    /// # Errors
    /// [`Step::JoinMulticast`]: the socket is a member already, the kernel refused, or
    /// the group could not be joined in time.
    #[doc(alias = "rdma_join_multicast", alias = "ibv_attach_mcast")]
    pub fn join_multicast(
        &self,
        group: impl Into<CmAddr>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramAddr> {
        self.join_multicast_as(group, JoinFlags::FULL_MEMBER, deadline)
    }

    /// Joins a multicast group with flags: [`JoinFlags::SEND_ONLY_FULL_MEMBER`] only
    /// sends to it.
    ///
    /// # Errors
    /// Those of [`join_multicast`](Self::join_multicast).
    #[doc(alias = "rdma_join_multicast_ex")]
    pub fn join_multicast_as(
        &self,
        group: impl Into<CmAddr>,
        flags: JoinFlags,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramAddr> {
        let joining = self.join_async(group.into(), flags, deadline.into());
        block_on(&self.node.hub, joining)
    }
}

impl<R: Runtime> DatagramOptions<Async<R>> {
    /// Asks a peer where it is, see [`DatagramSocket::connect`].
    ///
    /// # Errors
    /// Those of [`DatagramSocket::connect`].
    pub async fn connect(
        self,
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<(DatagramSocket<Async<R>>, DatagramPeer)> {
        self.connect_async(named(node, service), deadline.into())
            .await
    }
}

impl<R: Runtime> DatagramSocket<Async<R>> {
    /// Asks a peer, by the name or address of its node and of its service, where its
    /// datagrams go to, and opens a socket on the device that leads there. Its addresses
    /// are asked as [`Connector`](crate::face::Connector) connects to them, and the
    /// first that answers counts. Dropping the future cancels it.
    ///
    /// # Errors
    /// [`Error`](crate::Error), by the step that failed; [`Step::Connect`] where the peer
    /// serves nothing there, or did not answer in time.
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub async fn connect(
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<(Self, DatagramPeer)> {
        Self::options().connect(node, service, deadline).await
    }

    /// Asks a peer, by the name or address of its node and of its service, where its
    /// datagrams go to. Dropping the future cancels it.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub async fn resolve(
        &self,
        node: impl Into<String>,
        service: impl Into<String>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramPeer> {
        self.resolve_async(named(node, service), deadline.into())
            .await
    }

    /// Asks a peer by its address. Dropping the future cancels it.
    ///
    /// # Errors
    /// Those of [`connect`](Self::connect).
    #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
    pub async fn resolve_addr(
        &self,
        address: impl Into<CmAddr>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramPeer> {
        self.resolve_async(at(address), deadline.into()).await
    }

    /// Sends a copy of a datagram, which may be empty, to a peer or a group. Waits while
    /// as many are under way as [there may be](DatagramOptions::sends), but not until it
    /// was sent; whether it arrives nobody tells. A future that is dropped before it is
    /// done has sent nothing.
    ///
    /// # Errors
    /// [`Cause::DatagramTooLong`]: nothing was sent. [`Cause::Verbs`] where the kernel
    /// finds no way to the address, or the device has gone. [`Cause::Deadline`]: there
    /// was no room in time, and nothing was sent. Otherwise the socket is over.
    #[doc(alias = "rdma_post_ud_send", alias = "ibv_create_ah")]
    pub async fn send_to(&self, datagram: &[u8], to: &DatagramAddr) -> Result<()> {
        self.open.send(SendOperation::Send, datagram, to).await
    }

    /// The same, with a word for the receiver.
    ///
    /// # Errors
    /// Those of [`send_to`](Self::send_to).
    #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
    pub async fn send_to_with_immediate(
        &self,
        datagram: &[u8],
        to: &DatagramAddr,
        immediate: u32,
    ) -> Result<()> {
        let operation = SendOperation::SendWithImmediate(immediate);
        self.open.send(operation, datagram, to).await
    }

    /// Waits for the next datagram. Any number of tasks may; each datagram goes to one
    /// of them. Dropping the future loses none.
    ///
    /// # Errors
    /// [`Cause::Deadline`]: none came in time. [`Cause::GroupLost`], once for each group.
    /// Otherwise the socket is over.
    #[doc(alias = "rdma_post_recv", alias = "rdma_get_recv_comp")]
    pub async fn recv_from(&self) -> Result<Datagram> {
        self.open.receive().await
    }

    /// Waits until the device has sent all datagrams so far.
    ///
    /// # Errors
    /// [`Cause::Deadline`]; otherwise the socket is over.
    #[doc(alias = "rdma_get_send_comp")]
    pub async fn flush(&self) -> Result<()> {
        self.open.flush().await
    }

    /// Joins a multicast group, and receives what is sent to it from then on. The address
    /// is where to send to it. On RoCE v2 the kernel joins IPv4 groups alone. Dropping
    /// the future leaves the group again.
    ///
    /// # Errors
    /// [`Step::JoinMulticast`]: the socket is a member already, the kernel refused, or
    /// the group could not be joined in time.
    #[doc(alias = "rdma_join_multicast", alias = "ibv_attach_mcast")]
    pub async fn join_multicast(
        &self,
        group: impl Into<CmAddr>,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramAddr> {
        let flags = JoinFlags::FULL_MEMBER;
        self.join_multicast_as(group, flags, deadline).await
    }

    /// Joins a multicast group with flags: [`JoinFlags::SEND_ONLY_FULL_MEMBER`] only
    /// sends to it.
    ///
    /// # Errors
    /// Those of [`join_multicast`](Self::join_multicast).
    #[doc(alias = "rdma_join_multicast_ex")]
    pub async fn join_multicast_as(
        &self,
        group: impl Into<CmAddr>,
        flags: JoinFlags,
        deadline: impl Into<Deadline>,
    ) -> Result<DatagramAddr> {
        self.join_async(group.into(), flags, deadline.into()).await
    }
}
