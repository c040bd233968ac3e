//! How to open a datagram socket of IP addresses and ports.

use std::io;
use std::net::SocketAddr;

use rdmacm_core::CmAddr;

use super::{Node, RdmaDatagram};
use crate::connect::PeerAddr;
use crate::error::{Cause, Error, Result};
use crate::rsocket_datagrams::{self, DatagramSizes};
use crate::stage::Stage;

/// How to open an [`RdmaDatagram`].
///
/// Without receive or send requests it is refused, with an error of kind
/// [`InvalidInput`](io::ErrorKind::InvalidInput).
#[derive(Clone, Debug)]
pub struct RdmaDatagramOptions {
    node: Option<Node>,
    sizes: DatagramSizes,
}

impl Default for RdmaDatagramOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl RdmaDatagramOptions {
    /// The same as [`RdmaDatagram::options`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            node: None,
            sizes: DatagramSizes::default(),
        }
    }

    /// Uses this node. By default the socket opens a node of its own.
    #[must_use]
    pub fn with_node(mut self, node: &Node) -> Self {
        self.node = Some(node.clone());
        self
    }

    /// How many datagrams may arrive before the first of them is received, one or more, 64 by
    /// default, and as many over UDP. Further ones are lost. Memory for all of them, of the MTU
    /// and 40 bytes each, is registered and pinned.
    #[must_use]
    #[doc(alias = "RDMA_RQSIZE")]
    pub fn receives(mut self, datagrams: u32) -> Self {
        self.sizes.receives = datagrams;
        self
    }

    /// How many datagrams may be in flight, one or more, 64 by default. Further ones wait for
    /// those.
    #[must_use]
    #[doc(alias = "RDMA_SQSIZE")]
    pub fn sends(mut self, datagrams: u32) -> Self {
        self.sizes.sends = datagrams;
        self
    }

    /// Opens the socket on the device of an address, see [`RdmaDatagram::bind`].
    ///
    /// # Errors
    /// Those of [`RdmaDatagram::bind`].
    pub fn bind<A>(self, address: A) -> io::Result<RdmaDatagram>
    where
        A: TryInto<CmAddr>,
    {
        let address = ip_address(address)?;
        let node = self.open_node()?;
        let Node {
            event_loop,
            resolver,
        } = &node;
        let bound = rsocket_datagrams::bind(event_loop, resolver, address, self.sizes, None);
        Ok(RdmaDatagram::new(bound?))
    }

    fn open_node(&self) -> Result<Node> {
        self.node.clone().map_or_else(Node::open, Ok)
    }

    pub(super) async fn connect_on(self, node: &Node, peer: PeerAddr) -> io::Result<RdmaDatagram> {
        let Node {
            event_loop,
            resolver,
        } = node;
        let bound = rsocket_datagrams::bind_for(event_loop, resolver, &peer, self.sizes);
        Ok(RdmaDatagram::new(bound.await?))
    }

    waits_on_node! {
        /// Opens the socket on the device that leads to a peer, see [`RdmaDatagram::connect`].
        ///
        /// # Errors
        /// Those of [`RdmaDatagram::connect`].
        pub fn connect(self, peer: impl Into<PeerAddr>) -> io::Result<RdmaDatagram> {
            let node = self.open_node();
            self.connect_on(&node.clone(), peer.into())
        }
    }
}

fn ip_address(address: impl TryInto<CmAddr>) -> Result<SocketAddr> {
    let address = address.try_into().ok();
    let address = address.and_then(|address: CmAddr| address.socket_addr());
    address.ok_or_else(|| Error::new(Stage::Bind, Cause::InvalidAddress))
}
