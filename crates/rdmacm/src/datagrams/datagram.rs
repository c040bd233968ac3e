//! Datagrams that were received.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use rdmacm_core::{AhAttr, Gid};
use rdmacm_verbs::{Buffer, DatagramSource, GidEntry, RouteHeader};

use super::address::DatagramAddr;
use crate::messages::{Arrival, Traffic};

/// Bytes in front of every datagram, which are its route header if it has one.
pub(super) const ROUTE: usize = 40;

/// How a socket is known, for the way back of what it receives.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) port: u8,
    pub(super) qkey: u32,
    pub(super) gids: Vec<GidEntry>,
    /// The GID of the address it is bound to.
    pub(super) own: Option<GidEntry>,
}

impl Local {
    /// From the GID the datagram was sent to, or else from the socket's own.
    fn way_back(&self, source: DatagramSource, bytes: &[u8]) -> Option<AhAttr> {
        let way = source.way_back(bytes, self.port, &self.gids);
        way.or_else(|| source.way_back_from(bytes, self.port, self.own.as_ref()?))
    }
}

/// A datagram that was received: its bytes, where the device put them, and its sender.
///
/// Dropped, it makes room for another: its memory is posted again, unless the socket is
/// gone. It may outlive the socket.
pub struct Datagram {
    buffer: Option<Buffer>,
    length: usize,
    immediate: Option<u32>,
    source: Option<DatagramSource>,
    local: Arc<Local>,
    traffic: Weak<Traffic>,
}

impl Datagram {
    pub(super) fn new(arrival: Arrival, local: &Arc<Local>, traffic: &Arc<Traffic>) -> Self {
        Self {
            buffer: arrival.buffer,
            length: arrival.length,
            immediate: arrival.immediate,
            source: arrival.source,
            local: Arc::clone(local),
            traffic: Arc::downgrade(traffic),
        }
    }

    /// Where it came from, to answer it: with the queue key of this side, as no datagram
    /// says its sender's. `None` if there is no valid route header.
    #[must_use]
    #[doc(alias = "ibv_create_ah_from_wc", alias = "ibv_init_ah_from_wc")]
    pub fn sender(&self) -> Option<DatagramAddr> {
        let source = self.source?;
        Some(DatagramAddr {
            ah_attr: self.local.way_back(source, self.whole())?,
            qp_number: source.queue_pair,
            qkey: self.local.qkey,
        })
    }

    /// The GID it was sent to, this side's or a group's; `None` where it came without a
    /// route header.
    #[must_use]
    #[doc(alias = "ibv_grh")]
    pub fn destination(&self) -> Option<Gid> {
        self.source.filter(|source| source.has_route)?;
        Some(RouteHeader::parse(self.whole())?.destination)
    }

    /// The word that came with it, in this machine's order, from a peer that sends
    /// such, see [`send_to_with_immediate`](super::DatagramSocket::send_to_with_immediate).
    #[must_use]
    #[doc(alias = "imm_data")]
    pub fn immediate(&self) -> Option<u32> {
        self.immediate
    }

    /// With the route header.
    fn whole(&self) -> &[u8] {
        let bytes = self.buffer.as_deref().unwrap_or_default();
        bytes.get(..self.length).unwrap_or(bytes)
    }
}

impl Deref for Datagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole().get(ROUTE..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        if let (Some(buffer), Some(traffic)) = (self.buffer.take(), self.traffic.upgrade()) {
            traffic.post_receive(buffer);
        }
    }
}

impl fmt::Debug for Datagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagram")
            .field("bytes", &&**self)
            .field("immediate", &self.immediate)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}
