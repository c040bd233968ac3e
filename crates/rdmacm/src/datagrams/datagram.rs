//! Datagrams that were received.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rdmacm_core::{AhAttr, Gid};
use rdmacm_verbs::{Buffer, DatagramSource, GidEntry, Grh};

use super::address::DatagramAddr;
use crate::messages::{Arrival, ReturnedMemory};

/// Bytes in front of every datagram, which are its global route header if it has one.
pub(super) const GRH_SIZE: usize = 40;

/// What a socket replies with to datagrams that it receives.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) port: u8,
    pub(super) qkey: u32,
    pub(super) gids: Vec<GidEntry>,
    /// The GID of the address it is bound to.
    pub(super) own: Option<GidEntry>,
}

impl Local {
    /// The address of the sender: from the GID that the datagram was sent to, or else from
    /// the socket's own.
    fn reply_address(&self, source: DatagramSource, bytes: &[u8]) -> Option<AhAttr> {
        let reply = source.reply_address(bytes, self.port, &self.gids);
        reply.or_else(|| source.reply_address_from(bytes, self.port, self.own.as_ref()?))
    }
}

/// A datagram that was received: its bytes, in the memory that the device has written them
/// to, and its sender.
///
/// Dropping it makes room for another datagram: its memory is posted again while the socket
/// is open. It may outlive the socket.
pub struct Datagram {
    buffer: Option<Buffer>,
    length: usize,
    immediate: Option<u32>,
    source: DatagramSource,
    local: Arc<Local>,
    returned_memory: Arc<ReturnedMemory>,
}

impl Datagram {
    pub(super) fn new(
        arrival: Arrival,
        local: &Arc<Local>,
        returned_memory: &Arc<ReturnedMemory>,
    ) -> Self {
        Self {
            buffer: arrival.buffer,
            length: arrival.length,
            immediate: arrival.immediate,
            source: arrival.source,
            local: Arc::clone(local),
            returned_memory: Arc::clone(returned_memory),
        }
    }

    /// The address of its sender, to reply to: with the queue key of this side, as no
    /// datagram has its sender's. `None` if there is no valid global route header.
    #[must_use]
    #[doc(alias = "ibv_create_ah_from_wc", alias = "ibv_init_ah_from_wc")]
    pub fn sender(&self) -> Option<DatagramAddr> {
        let source = self.source;
        Some(DatagramAddr {
            ah_attr: self.local.reply_address(source, self.with_grh())?,
            qp_number: source.qp_number,
            qkey: self.local.qkey,
        })
    }

    /// The GID it was sent to, this side's or a group's; `None` if it has no global route
    /// header.
    #[must_use]
    #[doc(alias = "ibv_grh")]
    pub fn destination(&self) -> Option<Gid> {
        self.source.has_grh.then_some(())?;
        Some(Grh::parse(self.with_grh())?.destination)
    }

    /// The GID it was sent from.
    pub(crate) fn source_gid(&self) -> Option<Gid> {
        self.source.has_grh.then_some(())?;
        Some(Grh::parse(self.with_grh())?.source)
    }

    /// Its immediate data, in host order, if the peer has sent some, see
    /// [`send_to_with_immediate`](crate::DatagramSocket::send_to_with_immediate).
    #[must_use]
    #[doc(alias = "imm_data")]
    pub fn immediate(&self) -> Option<u32> {
        self.immediate
    }

    /// The bytes with the global route header.
    fn with_grh(&self) -> &[u8] {
        let bytes = self.buffer.as_deref().unwrap_or_default();
        bytes.get(..self.length).unwrap_or(bytes)
    }
}

impl Deref for Datagram {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.with_grh().get(GRH_SIZE..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Datagram {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        if let Some(buffer) = self.buffer.take() {
            self.returned_memory.add(buffer);
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
