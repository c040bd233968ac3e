//! How a stream is set up.

use std::io;
use std::time::Duration;

use rdmacm_core::Deadline;
use rdmacm_rsocket::MAX_MAP_ENTRIES;

use crate::busy_polling::BusyPollTime;
use crate::connect::CLOSE_DEADLINE;
use crate::data::MIN_KEEP_ALIVE;

/// Receive requests beyond the credits of the peer, for its messages without data: these need
/// no credit, and a device without a receive request for them makes the peer wait for up to
/// 655 ms (RoCE), or closes the connection (iWARP). A ring of rxe has room for one request fewer
/// than it has slots, a power of two: with 15, a stream of 16 receives needs 32 slots.
pub(super) const SPARE_RECEIVES: u32 = 15;

/// The messages that a peer sends without a credit until this side handles them: two updates for
/// the halves of its ring, two for its credits, and two that shut down.
pub(super) const MESSAGES_WITHOUT_CREDIT: u32 = 6;

/// Send requests for messages without data: updates of the peer, the two that shut down, and
/// a keep-alive. An update takes two on iWARP.
pub(super) const UPDATE_REQUESTS: u32 = 4;
const CLOSE_REQUESTS: u32 = 2;
const KEEP_ALIVE_REQUESTS: u32 = 1;

/// The smallest buffers: each half of a receive buffer is announced to the peer in turn.
const MIN_BUFFER: u32 = 64;
/// With its tables, it fits into any address space.
const MAX_BUFFER: u32 = (1 << 31) - 1;
/// A queue pair counts requests with 16 bits in the handshake, and rxe has no larger queues.
const MAX_REQUESTS: u32 = 0x3fff;

/// How a byte stream is set up: its buffers, how many writes may be in flight, and how it
/// ends. Each side chooses for itself.
///
/// Options that are out of their ranges are refused when a stream is made, at
/// [`Stage::QueuePair`](crate::Stage::QueuePair) and with an error of kind
/// [`InvalidInput`](io::ErrorKind::InvalidInput): a listener's, with each
/// peer.
#[derive(Clone, Debug)]
#[doc(alias = "rsetsockopt", alias = "rgetsockopt")]
pub struct StreamOptions {
    pub(super) receive_buffer: u32,
    pub(super) send_buffer: u32,
    pub(super) receives: u32,
    pub(super) shared_receives: Option<u32>,
    pub(super) sends: u32,
    pub(super) inline: u32,
    pub(super) map_entries: u16,
    pub(super) keep_alive: Option<Duration>,
    pub(super) linger: Deadline,
    pub(super) busy_poll: BusyPollTime,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamOptions {
    /// 128 KiB for each direction, 384 writes of the peer and 248 of this side in flight.
    #[must_use]
    pub fn new() -> Self {
        Self {
            receive_buffer: 128 * 1024,
            send_buffer: 128 * 1024,
            receives: 384,
            shared_receives: None,
            // With the requests for messages without data, all that rxe and siw have in 256 slots.
            sends: 248,
            inline: 64,
            map_entries: 0,
            keep_alive: None,
            linger: CLOSE_DEADLINE.into(),
            busy_poll: BusyPollTime::default(),
        }
    }

    /// Bytes that the peer may send before this side reads, rounded down to an even number; 64
    /// or more, and less than 2 GiB. The memory is registered, and pinned, when the stream is made: whole pages, of
    /// which 32 bytes are for announcements, and 24 for each of the
    /// [`map_entries`](Self::map_entries).
    #[must_use]
    #[doc(alias = "SO_RCVBUF")]
    pub fn receive_buffer(mut self, bytes: u32) -> Self {
        self.receive_buffer = bytes;
        self
    }

    /// Bytes that may be in flight to the peer; 64 or more. The memory is registered, and
    /// pinned, when the stream is made. The first [`reserve`](crate::RdmaStream::reserve) registers
    /// as much again.
    #[must_use]
    #[doc(alias = "SO_SNDBUF")]
    pub fn send_buffer(mut self, bytes: u32) -> Self {
        self.send_buffer = bytes;
        self
    }

    /// How many writes of the peer may arrive before this side handles them: 1 to 16383. A
    /// stream handles them when it is read from or written to.
    #[must_use]
    #[doc(alias = "RDMA_RQSIZE")]
    pub fn receives(mut self, requests: u32) -> Self {
        self.receives = requests;
        self
    }

    /// Receives through one queue of `requests` receive requests, at least
    /// [`receives`](Self::receives) + 15. All streams on the same device of the same
    /// [`Node`](crate::Node) that set this option to the same number share the queue. Use it for
    /// many streams that are mostly idle. It has no effect on iWARP. By default each stream has a
    /// receive queue of its own.
    ///
    /// `receives` still limits how many writes each peer may send before this side handles them.
    /// All peers together may send more than there are shared requests: a peer that finds none
    /// tries again after 0.64 ms.
    ///
    /// If the connection breaks without a disconnect from the peer, only a write or a
    /// [keep-alive](Self::keep_alive) detects it.
    #[must_use]
    #[doc(alias = "ibv_create_srq")]
    pub fn shared_receives(mut self, requests: u32) -> Self {
        self.shared_receives = Some(requests);
        self
    }

    /// How many writes may be in flight to the peer: 2 to 16383. On iWARP each one takes two.
    #[must_use]
    #[doc(alias = "RDMA_SQSIZE")]
    pub fn sends(mut self, requests: u32) -> Self {
        self.sends = requests;
        self
    }

    /// Writes of up to this many bytes are copied into their requests, instead of the send buffer:
    /// 64 by default. For 0, none is. Longer requests take more memory. A stream is not made if
    /// the device does not support as many: siw supports 80, and rxe some hundreds.
    #[must_use]
    #[doc(alias = "RDMA_INLINE", alias = "max_inline_data")]
    pub fn inline(mut self, bytes: u32) -> Self {
        self.inline = bytes;
        self
    }

    /// How many regions of memory the peer may map into this stream, for
    /// [`write_at`](crate::RdmaStream::write_at); none by default, and at most 32512. The handshake
    /// can express 0 to 128 and multiples of 256; other numbers are rounded down.
    #[must_use]
    #[doc(alias = "RDMA_IOMAPSIZE")]
    pub fn map_entries(mut self, regions: u16) -> Self {
        self.map_entries = regions;
        self
    }

    /// Sends an empty write at this interval while a call waits on the stream, so that a reader
    /// also detects a dead peer or a broken path. By default nothing is sent. Then only a write in
    /// flight detects it, and a writer that waits until the peer reads has none in flight.
    /// [`MessageOptions::keep_alive`](crate::MessageOptions::keep_alive) says how long the
    /// detection takes. Less than a millisecond is invalid.
    #[must_use]
    #[doc(alias = "SO_KEEPALIVE")]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = Some(interval);
        self
    }

    /// How long a stream that was dropped stays connected until the peer's device (on iWARP this
    /// host's TCP) has acknowledged what was written; [`CLOSE_DEADLINE`](crate::CLOSE_DEADLINE) by default. If the
    /// peer has closed the stream, it also stays until the peer disconnects, on RoCE and InfiniBand,
    /// for 200 ms at most.
    #[must_use]
    #[doc(alias = "SO_LINGER")]
    pub fn linger(mut self, deadline: impl Into<Deadline>) -> Self {
        self.linger = deadline.into();
        self
    }

    /// How long a caller that would wait polls before it sleeps: by default a thread polls for
    /// 500 µs, and a task does not, see
    /// [`MessageOptions::busy_poll`](crate::MessageOptions::busy_poll). Threads poll to read and for
    /// room to write, tasks to read only, also in `poll_read`, but not in `peek` and `readable`.
    /// Threads with a timeout and writes of more than 4 KiB do not poll.
    #[must_use]
    #[doc(alias = "SO_BUSY_POLL", alias = "polling_time")]
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = BusyPollTime::new(time);
        self
    }

    pub(super) fn receive_requests(&self) -> u32 {
        self.receives + SPARE_RECEIVES
    }

    pub(super) fn send_requests(&self) -> u32 {
        self.sends + UPDATE_REQUESTS + CLOSE_REQUESTS + KEEP_ALIVE_REQUESTS
    }

    pub(super) fn window(&self) -> u16 {
        u16::try_from(self.receives).unwrap_or(u16::MAX)
    }

    pub(super) fn check(&self) -> io::Result<()> {
        let requests = 1..=MAX_REQUESTS;
        let reason = if self.receive_buffer < MIN_BUFFER || self.send_buffer < MIN_BUFFER {
            "receive_buffer and send_buffer must be at least 64 bytes"
        } else if self.receive_buffer > MAX_BUFFER {
            "receive_buffer must be less than 2 GiB"
        } else if !requests.contains(&self.receives) || !(2..=MAX_REQUESTS).contains(&self.sends) {
            "receives must be 1 to 16383, and sends 2 to 16383"
        } else if self
            .shared_receives
            .is_some_and(|requests| requests < self.receive_requests())
        {
            "shared_receives must be at least receives + 15"
        } else if self.map_entries > MAX_MAP_ENTRIES {
            "map_entries must be at most 32512"
        } else if self
            .keep_alive
            .is_some_and(|interval| interval < MIN_KEEP_ALIVE)
        {
            "a keep-alive interval of less than a millisecond"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_carry_nothing_are_invalid() {
        let options = StreamOptions::new();
        assert!(options.check().is_ok());
        for wrong in [
            options.clone().receive_buffer(63),
            options.clone().receive_buffer(1 << 31),
            options.clone().send_buffer(0),
            options.clone().receives(0),
            options.clone().receives(0x4000),
            options.clone().sends(1),
            options.clone().shared_receives(398),
            options.clone().map_entries(MAX_MAP_ENTRIES + 1),
            options.clone().keep_alive(Duration::from_micros(999)),
        ] {
            let refused = wrong.check().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
