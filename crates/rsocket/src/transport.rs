//! How messages travel.

/// How a message reaches the peer. The kind of the device decides; both sides are of the
/// same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// As the immediate data of an RDMA write, in network byte order: InfiniBand and RoCE.
    Immediate,
    /// In a send of four bytes after the RDMA write, in the byte order of the sender:
    /// iWARP, which has no immediate data.
    Send,
}

impl Transport {
    /// How many send requests a message takes that reports a write.
    #[must_use]
    pub fn requests_per_write(self) -> u32 {
        match self {
            Self::Immediate => 1,
            Self::Send => 2,
        }
    }

    /// The bytes of a message in the form that this transport carries.
    #[must_use]
    pub fn encode(self, word: u32) -> [u8; 4] {
        match self {
            Self::Immediate => word.to_be_bytes(),
            Self::Send => word.to_ne_bytes(),
        }
    }

    /// The message in these bytes.
    #[must_use]
    pub fn decode(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Immediate => u32::from_be_bytes(bytes),
            Self::Send => u32::from_ne_bytes(bytes),
        }
    }
}
