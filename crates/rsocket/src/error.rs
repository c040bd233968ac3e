//! Errors.

use std::io;

use thiserror::Error;

/// Why the peer's handshake cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The peer speaks another version. A peer that is no rsocket sends zeros or too few
    /// bytes, which are version 0.
    #[error(
        "the peer speaks version {0} of the rsocket protocol instead of version 1, or is no rsocket"
    )]
    Version(u8),
    /// The private data is shorter than a handshake.
    #[error("the peer's handshake has {0} bytes instead of 40")]
    Length(usize),
    /// The peer's announcement table has fewer than two entries, so announcements would
    /// overwrite each other.
    #[error("the peer's announcement table has {0} entries: at least 2 are needed")]
    TableEntries(u32),
    /// An address and a length exceed the peer's address space.
    #[error("the peer announces memory beyond its address space")]
    AddressSpace,
}

/// What the peer did against the protocol. The stream must be closed: what arrived after
/// that has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A data message of zero bytes.
    #[error("the peer reported a write of 0 bytes")]
    EmptyData,
    /// A data message with more bytes than the announced memory had left.
    #[error("the peer reported a write of {length} bytes into {left} announced bytes")]
    BeyondAnnouncement {
        /// The bytes that the peer reported.
        length: u32,
        /// The bytes that are left in the entry.
        left: u32,
    },
    /// More messages than there were credits for.
    #[error("the peer sent a message without a credit")]
    NoCredit,
    /// A count of credits that leaves this side more of them than the peer has receive requests.
    #[error("the peer gave more credits than it has receive requests")]
    TooManyCredits,
    /// A count of credits below an earlier one, which bytes were reserved for.
    #[error("the peer sent a lower credit count than before")]
    FewerCredits,
    /// An operation that the protocol does not have.
    #[error("the peer sent a message with the reserved operation {0}")]
    ReservedOperation(u8),
    /// A map entry beyond the table.
    #[error("the peer reported map entry {index} of a table with {entries} entries")]
    MapEntry {
        /// The index that the peer reported.
        index: u32,
        /// The entries of the table.
        entries: u16,
    },
    /// A request without a message: no immediate data, or other than four bytes.
    #[error("the peer sent a request without a message")]
    NoMessage,
    /// Announced memory beyond the last address.
    #[error("the peer announced memory beyond its address space")]
    AddressSpace,
    /// Data after the peer's shutdown.
    #[error("the peer reported a write after it had shut down its side")]
    AfterShutdown,
}

/// Of the kind [`Unsupported`](io::ErrorKind::Unsupported).
impl From<HandshakeError> for io::Error {
    fn from(error: HandshakeError) -> Self {
        Self::new(io::ErrorKind::Unsupported, error)
    }
}

/// Of the kind [`ConnectionReset`](io::ErrorKind::ConnectionReset).
impl From<ProtocolError> for io::Error {
    fn from(error: ProtocolError) -> Self {
        Self::new(io::ErrorKind::ConnectionReset, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_has_the_kind_and_the_words() {
        let handshake = io::Error::from(HandshakeError::Length(39));
        assert_eq!(handshake.kind(), io::ErrorKind::Unsupported);
        let words = "the peer's handshake has 39 bytes instead of 40";
        assert_eq!(handshake.to_string(), words);
        let protocol = io::Error::from(ProtocolError::NoCredit);
        assert_eq!(protocol.kind(), io::ErrorKind::ConnectionReset);
        let words = "the peer sent a message without a credit";
        assert_eq!(protocol.to_string(), words);
    }
}
