//! The message that both sides of `ping` and `perf` send: the location of memory.

use rdmacm_verbs::RemoteMemory;

/// The location of a side's memory in rping's format: 16 bytes, big-endian. A message
/// that only lets the peer go on has the same size and is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    address: u64,
    key: u32,
    size: u32,
}

impl Message {
    /// Its length in bytes.
    pub(crate) const SIZE: usize = 16;

    /// Lets the peer go on.
    pub(crate) const GO_AHEAD: Self = Self {
        address: 0,
        key: 0,
        size: 0,
    };

    /// Describes memory; `None` if its length does not fit.
    pub(crate) fn about(memory: RemoteMemory) -> Option<Self> {
        Some(Self {
            address: memory.address(),
            key: memory.key(),
            size: memory.len().try_into().ok()?,
        })
    }

    /// The memory it describes; `None` if that goes beyond the last address.
    pub(crate) fn memory(self) -> Option<RemoteMemory> {
        RemoteMemory::new(self.address, self.size.into(), self.key)
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.key.to_be_bytes());
        bytes[12..].copy_from_slice(&self.size.to_be_bytes());
        bytes
    }

    /// `None` for bytes of another length.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let (address, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let size = rest.first_chunk()?;
        Some(Self {
            address: u64::from_be_bytes(*address),
            key: u32::from_be_bytes(*key),
            size: u32::from_be_bytes(*size),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_rpings() {
        let memory = RemoteMemory::new(0x0102_0304_0506_0708, 64, 0x0a0b_0c0d);
        let message = memory.and_then(Message::about);
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 0, 0, 0, 64];
        assert_eq!(message.map(Message::to_bytes), Some(bytes));
        assert_eq!(Message::from_bytes(&bytes), message);
        assert_eq!(
            Message::from_bytes(&bytes).and_then(Message::memory),
            memory
        );
    }

    #[test]
    fn another_length_is_no_message() {
        assert_eq!(Message::from_bytes(&[0; 15]), None);
        assert_eq!(Message::from_bytes(&[0; 17]), None);
    }

    #[test]
    fn memory_ends_at_the_last_address() {
        let mut bytes = [0xff; Message::SIZE];
        bytes[12..].copy_from_slice(&1_u32.to_be_bytes());
        assert_eq!(Message::from_bytes(&bytes).and_then(Message::memory), None);
    }
}
