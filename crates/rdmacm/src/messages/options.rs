//! How messages are carried.

use std::io;
use std::time::Duration;

use rdmacm_verbs::ProtectionDomain;

use crate::busy_polling::BusyPollTime;
use crate::data::MIN_KEEP_ALIVE;

/// How many receive requests are posted together, at most.
const MAX_BATCH: u32 = 16;

/// How a connection carries messages: their size, and how many may be in flight.
///
/// Each side chooses for itself. Only messages are on the wire, so the peer may be any
/// program, and there is no flow control:
///
/// * The messages that the peer has sent and this side has not received must fit into the
///   [receive requests](Self::receives). On RoCE the peer's device retries while there is
///   none, unless [`rnr_retry_count`] limits that. On iWARP a send succeeds when this
///   host's TCP has taken it, and the first message without a receive request closes the
///   connection: how many of the earlier messages arrived is unknown, and the error is
///   [`Cause::Closed`] without a reason.
/// * On iWARP the connecting side sends first (RFC 5044 §7.1). What the accepting side
///   sends before it has received something may arrive too early, and close the
///   connection on the other side before it is established.
/// * A message that is longer than the [size](Self::size) of its receiver closes the
///   connection.
///
/// Options that are out of their ranges are refused when a connection is made, at
/// [`Stage::QueuePair`](crate::Stage::QueuePair) and with an error of kind
/// [`InvalidInput`](io::ErrorKind::InvalidInput).
///
/// [`Cause::Closed`]: crate::Cause::Closed
/// [`rnr_retry_count`]: rdmacm_core::ConnParam::rnr_retry_count
#[derive(Clone, Debug)]
pub struct MessageOptions {
    pub(super) size: usize,
    pub(super) receives: u32,
    pub(super) sends: u32,
    pub(super) keep_alive: Option<Duration>,
    pub(super) busy_poll: BusyPollTime,
    pub(super) protection_domain: Option<ProtectionDomain>,
}

impl Default for MessageOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl MessageOptions {
    /// Messages of up to 4096 bytes, 32 receive requests and 32 send requests, in a
    /// protection domain of the connection's own.
    #[must_use]
    pub fn new() -> Self {
        Self {
            size: 4096,
            receives: 32,
            sends: 32,
            keep_alive: None,
            busy_poll: BusyPollTime::default(),
            protection_domain: None,
        }
    }

    /// The longest message to receive, and to send by copying it, in bytes: one or more.
    /// The memory for all messages is registered, and pinned, when the connection is made:
    /// 284 KiB by default (see `RLIMIT_MEMLOCK`).
    #[must_use]
    pub fn size(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    /// The number of messages that may arrive before this side receives one: one or more. A
    /// received [`Message`](crate::Message) counts until it is dropped.
    #[must_use]
    #[doc(alias = "max_recv_wr")]
    pub fn receives(mut self, messages: u32) -> Self {
        self.receives = messages;
        self
    }

    /// How many messages, reads and writes may be in flight: one or more. A further call waits
    /// until one of them completes.
    #[must_use]
    #[doc(alias = "max_send_wr")]
    pub fn sends(mut self, requests: u32) -> Self {
        self.sends = requests;
        self
    }

    /// Sends an empty write at this interval while a call waits on the connection, which
    /// detects a dead peer or a broken path. Nothing is sent while no call waits on the
    /// connection: the library has no thread for it. There are none by default.
    ///
    /// How soon a dead peer is detected depends on the transport. RoCE retries
    /// [`retry_count`](rdmacm_core::ConnParam::retry_count) times, each time after a multiple of
    /// [`ack_timeout`](crate::Connector::ack_timeout). rxe takes seven retries for no limit
    /// (`rxe_completer`), so a side with this option uses six, whatever the peer has asked for. An
    /// `ack_timeout` of 0 also means no limit, and then a dead peer is not detected. On iWARP, TCP
    /// gives up after about 15 minutes by default (`net.ipv4.tcp_retries2`). On the accepting side
    /// of iWARP, choose an interval that is longer than a handshake takes: a write that is sent too
    /// early may end the handshake. Less than a millisecond is invalid.
    #[must_use]
    #[doc(alias = "SO_KEEPALIVE")]
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        self.keep_alive = Some(interval);
        self
    }

    /// How long a caller that waits for a message polls before it sleeps: by default 500 µs for a
    /// thread, and not at all for a task. A message that arrives while the caller polls costs no
    /// wake-up. Between polls, the caller yields the processor to other threads (`sched_yield(2)`).
    /// After two waits that polled in vain, the next waits sleep at once; if messages never arrive
    /// in time, 64 of 65 waits do. Zero turns polling off, for machines with few processors. More than
    /// a second counts as a second.
    ///
    /// A task that polls keeps other tasks of the same thread waiting. Choose a time for tasks only
    /// if their peers reply within it and few connections share the thread; it should be no longer
    /// than a task may run without awaiting, 10 to 100 µs on most runtimes. `receive` polls, at
    /// most until its deadline; `poll_receive` does not. While a caller polls, it sends no
    /// keep-alives and reads no events.
    #[must_use]
    #[doc(alias = "SO_BUSY_POLL")]
    pub fn busy_poll(mut self, time: Duration) -> Self {
        self.busy_poll = BusyPollTime::new(time);
        self
    }

    /// Registers memory in this protection domain, so that several connections share
    /// memory, and that memory can be exposed before a peer is accepted:
    /// [`Incoming::protection_domain`](crate::Incoming::protection_domain) makes one on the
    /// peer's device. A domain of another device than the one that leads to the peer fails at
    /// [`Stage::QueuePair`](crate::Stage::QueuePair). Every peer of the domain reaches the memory
    /// that is exposed in it.
    #[must_use]
    #[doc(alias = "ibv_pd")]
    pub fn protection_domain(mut self, domain: &ProtectionDomain) -> Self {
        self.protection_domain = Some(domain.clone());
        self
    }

    /// The longest message, in bytes.
    #[must_use]
    pub fn message_size(&self) -> usize {
        self.size
    }

    pub(crate) fn has_keep_alive(&self) -> bool {
        self.keep_alive.is_some()
    }

    /// How many receive requests are posted together.
    pub(super) fn receive_batch(&self) -> u32 {
        (self.receives / 4).clamp(1, MAX_BATCH)
    }

    /// How many receive requests there are: more than the option, by as many as wait to be
    /// posted again.
    pub(super) fn posted_receives(&self) -> u32 {
        self.receives.saturating_add(self.receive_batch() - 1)
    }

    /// Bytes of registered memory for all messages.
    pub(super) fn memory(&self) -> Option<usize> {
        let messages = self.posted_receives().checked_add(self.sends)?;
        let messages = usize::try_from(messages).ok()?;
        self.size.checked_mul(messages)
    }

    pub(crate) fn check(&self) -> io::Result<()> {
        let reason = if self.size == 0 || self.receives == 0 || self.sends == 0 {
            "no bytes, no receive requests or no send requests"
        } else if self
            .keep_alive
            .is_some_and(|interval| interval < MIN_KEEP_ALIVE)
        {
            "a keep-alive interval of less than a millisecond"
        } else if self.memory().is_none() {
            "more memory for messages than an address space has"
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
        let options = MessageOptions::new();
        assert!(options.check().is_ok());
        assert_eq!(options.memory(), Some(284 * 1024));
        for wrong in [
            options.clone().size(0),
            options.clone().size(usize::MAX),
            options.clone().receives(0),
            options.clone().receives(u32::MAX),
            options.clone().sends(0),
            options.clone().keep_alive(Duration::from_micros(999)),
        ] {
            let refused = wrong.check().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
