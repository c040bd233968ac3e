//! How messages are carried.

use std::io;
use std::time::Duration;

/// How a connection carries messages: how long they are, how many there is room
/// for.
///
/// Each side chooses for itself, and neither tells the other: what is on the wire
/// is the messages and nothing else, so the peer may be any program. That also
/// means that there is no flow control:
///
/// * What the peer sends and this side has not received yet must fit into the
///   [receives](Self::receives). On RoCE the peer's device tries again for as long as
///   there is no room, unless [`rnr_retry_count`] sets an end to that. On iWARP a send
///   succeeds when this machine's TCP has taken it, and the first message that finds no
///   room ends the connection: of the sends before, nobody knows how many arrived, and
///   the error is [`Cause::Ended`], whose event names no reason.
/// * On iWARP the connecting side speaks first (RFC 5044 §7.1): what the accepting side
///   sends before it has received something may come too early, and end the
///   connection on the other side before it is there.
/// * A message longer than the [size](Self::size) of the side that receives it ends
///   the connection.
///
/// [`Cause::Ended`]: crate::Cause::Ended
/// [`rnr_retry_count`]: rdmacm_core::ConnParam::rnr_retry_count
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageOptions {
    pub(super) size: usize,
    pub(super) receives: u32,
    pub(super) sends: u32,
    pub(super) keep_alive: Option<Duration>,
}

impl Default for MessageOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MessageOptions {
    /// Messages of up to 4096 bytes, 32 to receive and 32 to send.
    #[must_use]
    pub fn new() -> Self {
        Self {
            size: 4096,
            receives: 32,
            sends: 32,
            keep_alive: None,
        }
    }

    /// The longest message to receive, and to send by copying it: one byte or more.
    /// The memory for all of them is registered, and pinned, when the connection
    /// is made: by default 256 KiB (see `RLIMIT_MEMLOCK`).
    #[must_use]
    pub fn size(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    /// How many messages may arrive before the first of them is received: one or
    /// more. A message that was received takes its place for as long as it is kept.
    #[must_use]
    #[doc(alias = "max_recv_wr")]
    pub fn receives(mut self, messages: u32) -> Self {
        self.receives = messages;
        self
    }

    /// How many messages, reads and writes may be under way: one or more; others
    /// wait for those before.
    #[must_use]
    #[doc(alias = "max_send_wr")]
    pub fn sends(mut self, requests: u32) -> Self {
        self.sends = requests;
        self
    }

    /// Sends an empty write whenever so much time has passed, for as long as a step
    /// of the connection waits (no thread does it otherwise): so a peer that is gone,
    /// or a way that is, ends the wait. There is none unless set.
    ///
    /// How long that takes is the transport's: RoCE repeats as often as
    /// [`retry_count`](rdmacm_core::ConnParam::retry_count) says, each time after a
    /// multiple of [`ack_timeout`](crate::face::Connector::ack_timeout). Seven times is
    /// for ever on rxe (`rxe_completer`), so with signs of life the one who connects
    /// says six instead. iWARP has TCP, which by default gives up after some 15 minutes
    /// (`net.ipv4.tcp_retries2`).
    #[must_use]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = Some(interval);
        self
    }

    pub(crate) fn has_signs_of_life(&self) -> bool {
        self.keep_alive.is_some()
    }

    /// The longest message, in bytes.
    #[must_use]
    pub fn message_size(&self) -> usize {
        self.size
    }

    /// Bytes of registered memory for all of it.
    pub(super) fn memory(&self) -> Option<usize> {
        let messages = usize::try_from(self.receives.checked_add(self.sends)?).ok()?;
        self.size.checked_mul(messages)
    }

    pub(super) fn check(&self) -> io::Result<()> {
        let reason = if self.size == 0 || self.receives == 0 || self.sends == 0 {
            "messages of no bytes, or no room for any"
        } else if self.keep_alive.is_some_and(|interval| interval.is_zero()) {
            "no time between two signs of life"
        } else if self.memory().is_none() {
            "more room for messages than memory holds"
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
    fn room_for_nothing_is_refused() {
        let options = MessageOptions::new();
        assert!(options.check().is_ok());
        assert_eq!(options.memory(), Some(256 * 1024));
        for wrong in [
            options.size(0),
            options.size(usize::MAX),
            options.receives(0),
            options.receives(u32::MAX),
            options.sends(0),
            options.keep_alive(Duration::ZERO),
        ] {
            let refused = wrong.check().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
