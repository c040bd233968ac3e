//! A datagram socket of IP addresses and ports.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rdmacm_core::CmAddr;

use super::RdmaDatagramOptions;
use crate::connect::PeerAddr;
use crate::data::checked_timeout;
use crate::rsocket_datagrams::Socket;

by_mode! {
    /// Datagrams over RDMA between IP addresses and ports, as those of a UDP socket.
    ///
    /// It speaks the rsocket protocol of librdmacm: a peer may be another `RdmaDatagram` and, on
    /// InfiniBand, a program that uses datagram rsockets. Those do not work on RoCE: librdmacm
    /// creates address handles without the global route that RoCE needs. iWARP has no datagrams.
    ///
    blocking {
        /// ```no_run
        /// # fn example() -> std::io::Result<()> {
        /// use rdmacm::RdmaDatagram;
        ///
        /// // One side replies to any sender.
        /// let server = RdmaDatagram::bind("10.1.0.7:7174")?;
        /// let mut bytes = [0; 1024];
        /// let (length, sender) = server.recv_from(&mut bytes)?;
        /// server.send_to(&bytes[..length], sender)?;
        ///
        /// // The other side.
        /// let client = RdmaDatagram::connect("storage-7:7174")?;
        /// client.send(b"ping")?;
        /// let length = client.recv(&mut bytes)?;
        /// # drop(length);
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    awaited {
        /// ```no_run
        /// # #[cfg(feature = "tokio")]
        /// # async fn example() -> std::io::Result<()> {
        /// use rdmacm::tokio::RdmaDatagram;
        ///
        /// let client = RdmaDatagram::connect("storage-7:7174").await?;
        /// client.send(b"ping").await?;
        /// let mut bytes = [0; 1024];
        /// let length = client.recv(&mut bytes).await?;
        /// # drop(length);
        /// # Ok(())
        /// # }
        /// ```
        ///
    }
    both {
        /// The socket has a UDP socket of the same address and port. Some datagrams to a peer
        /// travel over UDP, so UDP must pass between the hosts: the first ones, until the peer has
        /// sent the number of its queue pair and the path to it is resolved (on the
        /// [`BlockingExecutor`](crate::BlockingExecutor)); after that, one every ten seconds, in case
        /// the peer was restarted, and those that are sent while the path is resolved again, once a
        /// minute; and all of them if there is no path. Datagrams that take different routes may overtake each
        /// other.
        ///
        /// The socket replies to peers while any call or task waits on its node, in each
        /// [`try_recv_from`](Self::try_recv_from), in each send to a peer whose reply is
        /// outstanding, and in one of 32 other calls.
        ///
        /// It is closed for good when its device is removed, or the bond that has its address fails
        /// over to an interface with another link-layer address, or when a datagram cannot be sent,
        /// as on rxe if the route to its destination has gone. Dropping it discards what is still
        /// to be sent.
        #[doc(alias = "rsocket", alias = "SOCK_DGRAM")]
    }
    pub struct RdmaDatagram {
        socket: Socket,
    }
}

impl RdmaDatagram {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket }
    }

    /// Opens a socket on the device of an IP address: `10.1.0.7:7174`. The kernel chooses the port
    /// if it is 0.
    ///
    /// # Errors
    /// An [`Error`](crate::Error) in an [`io::Error`]: [`AddrInUse`](io::ErrorKind::AddrInUse) if
    /// another UDP socket or queue pair has the port; a wildcard address, which is of no device,
    /// and iWARP, which has no datagrams, are refused.
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a text that is not an address, and for an
    /// address that is not of IP.
    #[doc(alias = "rbind")]
    pub fn bind<A>(address: A) -> io::Result<Self>
    where
        A: TryInto<CmAddr>,
    {
        Self::options().bind(address)
    }

    /// Options to open a socket with.
    #[must_use]
    pub fn options() -> RdmaDatagramOptions {
        RdmaDatagramOptions::new()
    }

    /// The address it is bound to, with its port.
    #[must_use]
    #[doc(alias = "rgetsockname")]
    pub fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// The only peer, if the socket was [connected](Self::connect) to one.
    #[must_use]
    #[doc(alias = "rgetpeername")]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.socket.peer_addr()
    }

    /// The length of the longest datagram, in bytes: the MTU of the port when the socket was
    /// opened, less a header of 8 bytes, or 24 for IPv6; and no more than 2032, or 2020 for IPv6,
    /// for which librdmacm has room.
    #[must_use]
    pub fn max_datagram(&self) -> usize {
        self.socket.max_datagram()
    }

    /// How long a call that receives may take; without limit by default.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for zero.
    #[doc(alias = "SO_RCVTIMEO")]
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.timeouts().read = checked_timeout(timeout)?;
        Ok(())
    }

    /// The value set by [`set_read_timeout`](Self::set_read_timeout).
    #[must_use]
    pub fn read_timeout(&self) -> Option<Duration> {
        self.socket.timeouts().read
    }

    /// How long a call that sends may take; without limit by default.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for zero.
    #[doc(alias = "SO_SNDTIMEO")]
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.socket.timeouts().write = checked_timeout(timeout)?;
        Ok(())
    }

    /// The value set by [`set_write_timeout`](Self::set_write_timeout).
    #[must_use]
    pub fn write_timeout(&self) -> Option<Duration> {
        self.socket.timeouts().write
    }

    /// Receives a datagram as [`recv_from`](Self::recv_from) does, if one has arrived.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none has arrived. Any other error means that
    /// the socket is closed.
    #[doc(alias = "MSG_DONTWAIT")]
    pub fn try_recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let received = self.socket.try_receive(into)?;
        received.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    waits_on_node! {
        /// Opens a socket on the device that leads to a peer, by name or address, to send to and
        /// receive from this peer alone. The peer's addresses are tried as
        /// [`Connector`](super::Connector) tries them, and the first one to which there is a path
        /// counts: the peer is not asked. It takes
        /// [`CONNECT_DEADLINE`](crate::CONNECT_DEADLINE) at the most, after the node is open.
        ///
        /// # Errors
        /// An [`Error`](crate::Error) in an [`io::Error`], with the stage that failed.
        #[doc(alias = "rconnect")]
        pub fn connect(peer: impl Into<PeerAddr>) -> io::Result<Self> {
            let node = super::Node::open();
            Self::options().connect_on(&node.clone(), peer.into())
        }
    }

    waits! {
        /// Sends a copy of a datagram, which may be empty. Waits while as many datagrams are in
        /// flight as [`RdmaDatagramOptions::sends`] allows, but not until it was sent. Whether it
        /// arrives is unknown. Returns its length.
        awaited {
            /// If the future is dropped before it is ready, nothing was sent.
        }
        both {
            ///
            /// # Errors
            /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the datagram is longer than
            /// [`max_datagram`](Self::max_datagram); if the address has port 0, is a wildcard,
            /// broadcast or multicast address, or is of the other family; if only one of the two
            /// addresses is link-local; or if the socket is [connected](Self::connect) to another
            /// peer. [`TimedOut`](io::ErrorKind::TimedOut) if nothing was
            /// sent in time. The errors of `sendto(2)` over UDP. Any other error means that the
            /// socket was closed before.
            #[doc(alias = "rsendto")]
        }
        pub fn send_to(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
            self.socket.event_loop() => async {
                self.socket.send(datagram, to).await?;
                Ok(datagram.len())
            }
        }
    }

    waits! {
        /// Sends a datagram to the peer that the socket is connected to, as
        /// [`send_to`](Self::send_to) does.
        ///
        /// # Errors
        /// [`NotConnected`](io::ErrorKind::NotConnected) without a peer; those of
        /// [`send_to`](Self::send_to).
        #[doc(alias = "rsend")]
        pub fn send(&self, datagram: &[u8]) -> io::Result<usize> {
            self.socket.event_loop() => async {
                let peer = self.socket.peer_addr().ok_or(io::ErrorKind::NotConnected)?;
                self.socket.send(datagram, peer).await?;
                Ok(datagram.len())
            }
        }
    }

    waits! {
        /// Waits for the next datagram. Returns the number of its bytes that fit, and its sender;
        /// the rest is lost. Any number of callers may wait; each datagram is received by one of
        /// them. A connected socket receives its peer's datagrams alone.
        awaited {
            /// Dropping the future loses none.
        }
        both {
            ///
            /// # Errors
            /// [`TimedOut`](io::ErrorKind::TimedOut) if none arrived in time. Any other error means
            /// that the socket was closed before.
            #[doc(alias = "rrecvfrom")]
        }
        pub fn recv_from(&self, into: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
            self.socket.event_loop() => async { Ok(self.socket.receive(into).await?) }
        }
    }

    waits! {
        /// Waits for the next datagram, as [`recv_from`](Self::recv_from) does.
        ///
        /// # Errors
        /// Those of [`recv_from`](Self::recv_from).
        #[doc(alias = "rrecv")]
        pub fn recv(&self, into: &mut [u8]) -> io::Result<usize> {
            self.socket.event_loop() => async {
                let (length, _) = self.socket.receive(into).await?;
                Ok(length)
            }
        }
    }
}

impl fmt::Debug for RdmaDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RdmaDatagram")
            .field("address", &self.local_addr())
            .field("peer", &self.peer_addr())
            .finish_non_exhaustive()
    }
}
