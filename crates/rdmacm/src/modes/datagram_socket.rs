//! A datagram socket.

use rdmacm_core::{CmAddr, Deadline, IdHandle, JoinFlags};
use rdmacm_verbs::SendOperation;

use super::{DatagramOptions, Node};
use crate::attempt::Attempt;
use crate::connect::PeerAddr;
use crate::datagrams::{
    Datagram, DatagramAddr, DatagramConfig, DatagramPeer, Socket, resolve_peer,
};
use crate::error::{Cause, Result, Target};
use crate::stage::Stage;

by_mode! {
    /// A queue pair for datagrams on one RDMA device: it sends to any address and receives from
    /// any sender, see [`datagrams`](crate::datagrams).
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> rdmacm::Result<()> {
        /// use rdmacm::DatagramSocket;
        ///
        /// let socket = DatagramSocket::bind("10.1.0.7:7174")?;
        /// let datagram = socket.recv_from()?;
        /// if let Some(sender) = datagram.sender() {
        ///     socket.send_to(&datagram, &sender)?;
        /// }
        /// socket.flush()?;
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> rdmacm::Result<()> {
        /// use rdmacm::tokio::DatagramSocket;
        ///
        /// let socket = DatagramSocket::bind("10.1.0.7:7174")?;
        /// let datagram = socket.recv_from().await?;
        /// if let Some(sender) = datagram.sender() {
        ///     socket.send_to(&datagram, &sender).await?;
        /// }
        /// socket.flush().await?;
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    both {
        /// SIDR requests (peers resolving its address and port) are answered only by calls that
        /// receive, send or flush on this socket: keep one waiting, to receive for example. Once the
        /// socket is closed, it accepts none.
        ///
        /// It is closed for good when its device is removed, or the bond that has its address fails
        /// over to an interface with another link-layer address ([`Cause::SocketClosed`],
        /// [`Cause::Device`]), or when a datagram cannot be sent ([`Cause::Request`], or
        /// [`Cause::QueuePairFailed`] if only flushed requests have been seen so far), as on rxe if
        /// the route to its destination has gone. An address that is moved otherwise closes
        /// nothing. Datagrams that have arrived are received first. A group that is lost
        /// ([`Cause::GroupLost`]) does not close it.
        ///
        /// Dropping it leaves its groups and discards what is still to be sent:
        /// [`flush`](Self::flush) waits for that.
    }
    #[derive(Debug)]
    #[doc(alias = "IBV_QPT_UD", alias = "RDMA_PS_UDP")]
    pub struct DatagramSocket {
        socket: Socket,
        node: Node,
        config: DatagramConfig,
    }
}

impl DatagramSocket {
    by_mode! {
        /// Opens a socket on the device of an address: `10.1.0.7:7174`. The kernel chooses the
        /// port if it is 0.
        ///
        /// # Errors
        /// [`Cause::InvalidAddress`] for a text that is not an address; [`Stage::Bind`] if the
        /// kernel refuses, for a wildcard address, which is of no device, and on iWARP, which has
        /// no datagrams; [`Stage::QueuePair`]; [`Stage::Listen`]; [`Stage::Open`], unless the
        /// options have a node, if `/dev/infiniband/rdma_cm` cannot be opened
        blocking {
            /// ([`Node::open`]).
        }
        awaited {
            /// ([`Node::open`]), or the call is not made within the runtime.
        }
        pub fn bind<A>(address: A) -> Result<Self>
        where
            A: TryInto<CmAddr>,
        {
            Self::options().bind(address)
        }
    }

    /// Options to open a socket with.
    #[must_use]
    pub fn options() -> DatagramOptions {
        DatagramOptions::new()
    }

    pub(super) fn open<A>(node: Node, config: DatagramConfig, address: A) -> Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        let attempt = Attempt::new(&node.event_loop, None, Target::name("the given address"));
        let address = address
            .try_into()
            .map_err(|_| attempt.fail(Stage::Bind, Cause::InvalidAddress))?;
        let socket = Socket::open(&attempt.at_address(address), address, &config)?;
        Ok(Self {
            socket,
            node,
            config,
        })
    }

    /// The address it is bound to, with its port.
    #[must_use]
    pub fn local_addr(&self) -> CmAddr {
        self.socket.address()
    }

    /// The id, by which to query its device and GID.
    #[must_use]
    pub fn id(&self) -> &IdHandle {
        self.socket.id()
    }

    /// The number of its queue pair, to which peers send.
    #[must_use]
    #[doc(alias = "qp_num")]
    pub fn qp_number(&self) -> u32 {
        self.socket.queue_pair().queue_pair().number()
    }

    /// The queue key that it receives with.
    #[must_use]
    pub fn qkey(&self) -> u32 {
        self.socket.qkey()
    }

    /// The length of the longest datagram that it sends or receives, in bytes: the MTU of the
    /// port when it was opened.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.socket.max_datagram()
    }

    /// How long each later call that sends, receives or flushes may take, counted from the call. There
    /// is no limit by default.
    pub fn set_deadline(&self, deadline: impl Into<Deadline>) {
        let queue_pair = self.socket.queue_pair();
        queue_pair.state().set_deadline(deadline.into());
    }

    /// The next datagram, if one has arrived.
    ///
    /// # Errors
    /// Those of [`recv_from`](Self::recv_from) but the deadline.
    pub fn try_recv_from(&self) -> Result<Option<Datagram>> {
        self.socket.try_receive()
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// [`Stage::LeaveMulticast`]: the socket is not a member, or the kernel refused; it is not
    /// a member afterwards.
    #[doc(alias = "rdma_leave_multicast", alias = "ibv_detach_mcast")]
    pub fn leave_multicast(&self, group: impl Into<CmAddr>) -> Result<()> {
        let group = group.into();
        let attempt = self.socket.attempt(Deadline::Never).at_address(group);
        self.socket.leave_group(&attempt, group)
    }

    async fn resolve_from_here(&self, peer: PeerAddr, deadline: Deadline) -> Result<DatagramPeer> {
        let Node {
            event_loop,
            resolver,
        } = &self.node;
        let source = Some(self.local_addr().with_port(0));
        let resolving = resolve_peer(event_loop, resolver, &peer, &self.config, source, deadline);
        Ok(resolving.await?.peer)
    }

    async fn join(
        &self,
        group: CmAddr,
        flags: JoinFlags,
        deadline: Deadline,
    ) -> Result<DatagramAddr> {
        let attempt = self.socket.attempt(deadline).at_address(group);
        self.socket.join(&attempt, group, flags).await
    }

    waits_on_node! {
        /// Resolves a peer, by name or address, to the address of its datagrams, and opens a
        /// socket on the device that leads there. The peer's addresses are tried as
        /// [`Connector`](super::Connector) tries them; the first one that replies counts. Of the
        /// results of an address lookup, the socket takes neither the port of the source nor the
        /// port space, which is an option of its own.
        awaited {
            /// Dropping the future cancels it.
        }
        both {
            ///
            /// # Errors
            /// [`Error`](crate::Error), with the stage that failed; [`Stage::Connect`] if the
            /// peer has no service there, or did not reply in time.
            #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
        }
        pub fn connect(
            peer: impl Into<PeerAddr>,
            deadline: impl Into<Deadline>
        ) -> Result<(Self, DatagramPeer)> {
            let node = Node::open();
            Self::options().connect_on(node.clone(), peer.into(), deadline.into())
        }
    }

    waits! {
        /// Resolves a peer, by name or address, to the address of its datagrams.
        awaited {
            /// Dropping the future cancels it.
        }
        both {
            ///
            /// # Errors
            /// Those of [`connect`](Self::connect).
            #[doc(alias = "rdma_connect", alias = "rdma_resolve_addr")]
        }
        pub fn resolve(
            &self,
            peer: impl Into<PeerAddr>,
            deadline: impl Into<Deadline>
        ) -> Result<DatagramPeer> {
            &self.node.event_loop => self.resolve_from_here(peer.into(), deadline.into())
        }
    }

    waits! {
        /// Sends a copy of a datagram, which may be empty, to a peer or a group. Waits while as
        /// many datagrams are in flight as [`DatagramOptions::sends`] allows, but not until it
        /// was sent. The first datagram to a host, and one in each minute after that, also waits
        /// until the host has answered (ARP, neighbour discovery), for three seconds at most.
        /// Whether it arrives is unknown.
        awaited {
            /// If the future is dropped before it is ready, nothing was sent.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::DatagramTooLong`]; [`Cause::Event`] if the host does not answer;
            /// [`Cause::Device`] if the kernel finds no route to the address, or the device's
            /// context is closed; [`Cause::Deadline`] if there was no room or no answer in time:
            /// nothing was sent. Otherwise the socket is closed.
            #[doc(alias = "rdma_post_ud_send", alias = "ibv_create_ah")]
        }
        pub fn send_to(&self, datagram: &[u8], to: &DatagramAddr) -> Result<()> {
            &self.node.event_loop => self.socket.send(SendOperation::Send, datagram, to)
        }
    }

    waits! {
        /// Sends a datagram with immediate data, in host order.
        ///
        /// # Errors
        /// Those of [`send_to`](Self::send_to).
        #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
        pub fn send_to_with_immediate(
            &self,
            datagram: &[u8],
            to: &DatagramAddr,
            immediate: u32
        ) -> Result<()> {
            &self.node.event_loop => async {
                let operation = SendOperation::SendWithImmediate(immediate);
                self.socket.send(operation, datagram, to).await
            }
        }
    }

    waits! {
        /// Waits for the next datagram. Any number of callers may wait; each datagram is received
        /// by one of them.
        awaited {
            /// Dropping the future loses none.
        }
        both {
            ///
            /// # Errors
            /// [`Cause::Deadline`]: none came in time. [`Cause::GroupLost`], once for each group.
            /// Otherwise the socket is closed.
            #[doc(alias = "rdma_post_recv", alias = "rdma_get_recv_comp")]
        }
        pub fn recv_from(&self) -> Result<Datagram> {
            &self.node.event_loop => self.socket.receive()
        }
    }

    waits! {
        /// Waits until the device has sent all datagrams so far.
        ///
        /// # Errors
        /// [`Cause::Deadline`]; otherwise the socket is closed.
        #[doc(alias = "rdma_get_send_comp")]
        pub fn flush(&self) -> Result<()> {
            &self.node.event_loop => self.socket.flush()
        }
    }

    waits! {
        /// Joins a multicast group, and receives its datagrams from then on. Returns the address
        /// to send to the group. On RoCE v2 the kernel joins only IPv4 groups.
        awaited {
            /// Dropping the future leaves the group again.
        }
        both {
            ///
            /// # Errors
            /// [`Stage::JoinMulticast`]: the socket is a member already, the address is that of one
            /// host, the kernel refused, or the group could not be joined in time.
            #[doc(alias = "rdma_join_multicast", alias = "ibv_attach_mcast")]
        }
        pub fn join_multicast(
            &self,
            group: impl Into<CmAddr>,
            deadline: impl Into<Deadline>
        ) -> Result<DatagramAddr> {
            &self.node.event_loop =>
                self.join(group.into(), JoinFlags::FULL_MEMBER, deadline.into())
        }
    }

    waits! {
        /// Joins a multicast group with flags: with [`JoinFlags::SEND_ONLY_FULL_MEMBER`] the
        /// socket only sends to it.
        ///
        /// # Errors
        /// Those of [`join_multicast`](Self::join_multicast).
        #[doc(alias = "rdma_join_multicast_ex")]
        pub fn join_multicast_as(
            &self,
            group: impl Into<CmAddr>,
            flags: JoinFlags,
            deadline: impl Into<Deadline>
        ) -> Result<DatagramAddr> {
            &self.node.event_loop => self.join(group.into(), flags, deadline.into())
        }
    }
}
