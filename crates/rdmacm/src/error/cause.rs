//! What went wrong.

use std::fmt;
use std::io;

use rdmacm_addrinfo as addrinfo;
#[cfg(feature = "verbs")]
use rdmacm_core::EventKind;
use rdmacm_core::{self as core, ErrnoName, EventFailure};

use crate::ending::Ending;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel, or this library before it, refused.
    #[error("{}", Refusal(.0))]
    Refused(core::Error),
    /// The kernel reported a failure.
    #[error(transparent)]
    Event(EventFailure),
    /// The peer gave up before the connection was there.
    #[error("the peer has gone")]
    Gone,
    /// The deadline passed first; nothing of the attempt is left.
    #[error("the deadline passed")]
    Deadline,
    /// The deadline passed while so many of TCP's handshakes were under way, as many as
    /// [`NodeOptions::handshakes`](crate::NodeOptions::handshakes) allows. Those to
    /// hosts that do not answer end when TCP gives up.
    #[error("{0} TCP handshakes of this node were under way until the deadline")]
    Handshakes(usize),
    /// The name has no answer.
    #[error(transparent)]
    Name(addrinfo::Error),
    /// The name has no address of a family the source has.
    #[error("no address of the source's family")]
    NoAddress,
    /// No such interface or device, or it has no address of the family.
    #[error("no address of this family on {0}")]
    Source(String),
    /// The queue pair could not be made.
    #[error("no queue pair: {0}")]
    QueuePair(io::Error),
    /// The listener was stopped.
    #[error("the listener was stopped")]
    Stopped,
    /// siw has closed the TCP socket that listened on this address through this device: a
    /// TCP peer disconnected too early. Listen on another port; see
    /// [`Listener`](crate::Listener#siw) for what happens when the process ends.
    #[error(
        "the kernel (siw) has closed the TCP socket that listened on {address} via {device}, as \
         it does when a TCP peer disconnects too early: listen on another port, and keep this \
         process: the kernel may crash when it ends"
    )]
    ListenerSocketClosed {
        /// The address, which may be a wildcard.
        address: core::CmAddr,
        /// The device's name.
        device: String,
    },
    /// The connection has ended: how.
    #[error("the connection ended: {0}")]
    Ended(Ending),
    /// A request failed, which ended the connection. If it may have failed because the
    /// peer was disconnecting, the event that says so was waited for, for a second, in
    /// vain; where it comes, [`Ended`](Self::Ended) holds both.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Completion(rdmacm_verbs::CompletionError),
    /// The device refused, or has gone ([`Error::is_gone`](rdmacm_verbs::Error::is_gone)).
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Verbs(#[from] rdmacm_verbs::Error),
    /// The message has so many bytes, more than this side copies; the limit is
    /// [`MessageOptions::size`](crate::MessageOptions::size).
    #[cfg(feature = "verbs")]
    #[error("{0} bytes are more than the connection's messages have")]
    TooLong(usize),
    /// A datagram is longer than the path's MTU; nothing was sent.
    #[cfg(feature = "verbs")]
    #[error("{bytes} bytes are more than a datagram has there, {max}")]
    DatagramTooLong {
        /// Bytes of the datagram.
        bytes: usize,
        /// Bytes of the longest.
        max: usize,
    },
    /// A datagram socket is over: its device is gone, or its address is another
    /// device's.
    #[cfg(feature = "verbs")]
    #[error("the socket is over: {0}")]
    SocketOver(EventKind),
    /// A multicast group was lost; the socket goes on without it.
    #[cfg(feature = "verbs")]
    #[error("the group {group} is lost: {failure}")]
    GroupLost {
        /// The group.
        group: core::CmAddr,
        /// What the kernel says.
        failure: EventFailure,
    },
    /// The text is no address.
    #[error("not an address with a port")]
    NotAnAddress,
}

impl Cause {
    /// A lookup's deadline is the caller's.
    pub(crate) fn name(error: addrinfo::Error) -> Self {
        match error {
            addrinfo::Error::LookupDeadline => Self::Deadline,
            error => Self::Name(error),
        }
    }
}

/// A refusal, without naming the operation, which the step does.
struct Refusal<'a>(&'a core::Error);

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = match self.0 {
            core::Error::Command(refused) => refused,
            core::Error::Open { path, errno, cause } => {
                return write!(f, "{}: {}: {cause}", path.display(), ErrnoName(*errno));
            }
            error => return error.fmt(f),
        };
        write!(f, "{:?}: {}", refused.command, ErrnoName(refused.errno))?;
        match refused.cause() {
            Some(cause) => write!(f, ": {cause}"),
            None => write!(f, ": {}", io::Error::from_raw_os_error(refused.errno)),
        }
    }
}

impl From<core::Error> for Cause {
    fn from(error: core::Error) -> Self {
        match error {
            core::Error::DeadlinePassed => Self::Deadline,
            error => Self::Refused(error),
        }
    }
}
