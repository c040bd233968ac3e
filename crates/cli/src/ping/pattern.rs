//! The bytes of a ping, as rping makes them.

/// The fewest bytes: the longest header and a zero.
pub(crate) const MIN_SIZE: u32 = 23;

/// The first and the last letter that may follow the header.
const FIRST: u8 = b'A';
const LAST: u8 = b'z';

/// `size` bytes: a header with the ping's number, letters that start one later with each
/// ping, and a zero at the end.
pub(super) fn pattern(number: u32, size: usize) -> Vec<u8> {
    let mut bytes = format!("rdma-ping-{number}: ").into_bytes();
    let letters = (FIRST..=LAST).cycle();
    let letters = letters.skip(number as usize % usize::from(LAST - FIRST + 1));
    let before_the_zero = size.saturating_sub(1);
    bytes.extend(letters.take(before_the_zero.saturating_sub(bytes.len())));
    bytes.truncate(before_the_zero);
    bytes.push(0);
    bytes
}

/// How many bytes a server writes back: up to and including the first zero.
pub(super) fn length(bytes: &[u8]) -> usize {
    let zero = bytes.iter().position(|byte| *byte == 0);
    zero.map_or(bytes.len(), |zero| zero + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_begin_one_further_with_each_ping() {
        assert_eq!(pattern(0, 20), *b"rdma-ping-0: ABCDEF\0");
        assert_eq!(pattern(1, 20), *b"rdma-ping-1: BCDEFG\0");
        assert_eq!(pattern(57, 20), *b"rdma-ping-57: zABCD\0");
        assert_eq!(pattern(58, 20), *b"rdma-ping-58: ABCDE\0");
    }

    #[test]
    fn the_longest_head_fits_in_the_smallest_ping() {
        let smallest = pattern(u32::MAX, MIN_SIZE as usize);
        assert_eq!(smallest, *b"rdma-ping-4294967295: \0");
    }

    #[test]
    fn a_ping_ends_with_its_only_zero() {
        let bytes = pattern(123, 65535);
        assert_eq!((bytes.len(), length(&bytes)), (65535, 65535));
        assert_eq!(length(b"ab\0cd"), 3);
        assert_eq!(length(b"abc"), 3);
    }
}
