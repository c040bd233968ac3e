//! Memory of a peer.

use std::ops::{Bound, RangeBounds};

/// Memory of a peer that others may access: its address there, its length in bytes, and its
/// key. It is a plain value, which the peer sends as [bytes](Self::to_bytes) or in a format of
/// its own.
///
/// The peer's device checks each access. A wrong or outdated value closes the connection, and
/// does no other harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteMemory {
    address: u64,
    length: u64,
    key: u32,
}

impl RemoteMemory {
    /// The length of [`to_bytes`](Self::to_bytes).
    pub const SIZE: usize = 20;

    /// No memory: the target of an empty write.
    pub const NONE: Self = Self {
        address: 0,
        length: 0,
        key: 0,
    };

    /// Memory that a peer has described; `None` if it goes beyond the last address.
    #[must_use]
    pub fn new(address: u64, length: u64, key: u32) -> Option<Self> {
        address.checked_add(length)?;
        Some(Self {
            address,
            length,
            key,
        })
    }

    /// Memory of this process: no allocation goes beyond the last address.
    pub(super) fn from_allocation(address: u64, length: usize, key: u32) -> Self {
        Self {
            address,
            length: length as u64,
            key,
        }
    }

    /// As bytes: address, length and key, in network byte order, without padding.
    ///
    /// ```
    /// use rdmacm_verbs::RemoteMemory;
    ///
    /// let memory = RemoteMemory::new(0x7fff_0000, 4096, 0x1234).unwrap();
    /// let bytes = memory.to_bytes();
    /// assert_eq!(RemoteMemory::from_bytes(&bytes), Some(memory));
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fields = self.address.to_be_bytes().into_iter();
        let fields = fields.chain(self.length.to_be_bytes());
        for (byte, value) in bytes.iter_mut().zip(fields.chain(self.key.to_be_bytes())) {
            *byte = value;
        }
        bytes
    }

    /// From the bytes of [`to_bytes`](Self::to_bytes), at the beginning of a message for
    /// example; `None` for fewer bytes, and for memory that goes beyond the last address.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (address, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (key, _) = rest.split_first_chunk()?;
        Self::new(
            u64::from_be_bytes(*address),
            u64::from_be_bytes(*length),
            u32::from_be_bytes(*key),
        )
    }

    /// The address, in the peer's address space.
    #[must_use]
    #[doc(alias = "remote_addr")]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether the length is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The peer's key (rkey).
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn key(&self) -> u32 {
        self.key
    }

    /// A slice of it; `None` if the range is outside of it.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<u64>) -> Option<Self> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.checked_add(1)?,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.length,
        };
        (start <= end && end <= self.length).then(|| Self {
            address: self.address + start,
            length: end - start,
            key: self.key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_outside_is_none() {
        let whole = RemoteMemory::new(100, 10, 7).unwrap();
        assert_eq!(whole.slice(..), Some(whole));
        let slice = whole.slice(2..=5).unwrap();
        assert_eq!((slice.address(), slice.len(), slice.key()), (102, 4, 7));
        assert_eq!(slice.slice(4..).map(|none| none.is_empty()), Some(true));
        assert_eq!(slice.slice(..5), None);
        assert_eq!(slice.slice(5..), None);
        assert_eq!(
            slice.slice((Bound::Excluded(u64::MAX), Bound::Unbounded)),
            None
        );
    }

    #[test]
    fn bytes_are_in_network_order() {
        let memory = RemoteMemory::new(0x0102_0304_0506_0708, 0x1112, 0x2122_2324).unwrap();
        let bytes = memory.to_bytes();
        assert_eq!(bytes[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[8..16], [0, 0, 0, 0, 0, 0, 0x11, 0x12]);
        assert_eq!(bytes[16..], [0x21, 0x22, 0x23, 0x24]);
        let mut longer = bytes.to_vec();
        longer.extend(b"more");
        assert_eq!(RemoteMemory::from_bytes(&longer), Some(memory));
        assert_eq!(RemoteMemory::from_bytes(&bytes[..19]), None);
        let beyond = [0xff; RemoteMemory::SIZE];
        assert_eq!(RemoteMemory::from_bytes(&beyond), None);
    }

    #[test]
    fn no_range_goes_beyond_the_last_address() {
        assert!(RemoteMemory::new(u64::MAX, 0, 0).is_some());
        assert_eq!(RemoteMemory::new(u64::MAX, 1, 0), None);
    }
}
