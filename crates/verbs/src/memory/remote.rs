//! Memory of a peer.

use std::ops::{Bound, RangeBounds};

/// Memory that a peer lets others reach: an address there, how many bytes, and the
/// key. It is a plain value; how it gets from one side to the other is up to
/// them.
///
/// The peer's device checks every access against what it knows, so a value that is
/// wrong or out of date does no harm but to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemoteMemory {
    address: u64,
    length: u64,
    key: u32,
}

impl RemoteMemory {
    /// None: what an empty write writes to, which no peer's memory is needed for.
    pub const NONE: Self = Self {
        address: 0,
        length: 0,
        key: 0,
    };

    /// As a peer told it; `None` where the range goes beyond the last address.
    #[must_use]
    pub fn new(address: u64, length: u64, key: u32) -> Option<Self> {
        address.checked_add(length)?;
        Some(Self {
            address,
            length,
            key,
        })
    }

    /// That of this process, which no allocation of goes beyond the last address.
    pub(super) fn of_allocation(address: u64, length: usize, key: u32) -> Self {
        Self {
            address,
            length: length as u64,
            key,
        }
    }

    /// Where it is, in the peer's terms.
    #[must_use]
    #[doc(alias = "remote_addr")]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes it has.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The peer's key.
    #[must_use]
    #[doc(alias = "rkey")]
    pub fn key(&self) -> u32 {
        self.key
    }

    /// A part of it; `None` where that is not within.
    #[must_use]
    pub fn part(&self, range: impl RangeBounds<u64>) -> Option<Self> {
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
    fn a_part_is_within() {
        let whole = RemoteMemory::new(100, 10, 7).unwrap();
        assert_eq!(whole.part(..), Some(whole));
        let part = whole.part(2..=5).unwrap();
        assert_eq!((part.address(), part.len(), part.key()), (102, 4, 7));
        assert_eq!(part.part(4..).map(|none| none.is_empty()), Some(true));
        assert_eq!(part.part(..5), None);
        assert_eq!(part.part(5..), None);
        assert_eq!(
            part.part((Bound::Excluded(u64::MAX), Bound::Unbounded)),
            None
        );
    }

    #[test]
    fn no_range_goes_beyond_the_last_address() {
        assert!(RemoteMemory::new(u64::MAX, 0, 0).is_some());
        assert_eq!(RemoteMemory::new(u64::MAX, 1, 0), None);
    }
}
