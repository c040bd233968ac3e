//! Pieces of replies.

use super::daemon::acm_entry as entry;

/// A header of a reply, which says this length.
pub(super) fn header(length: u16) -> Vec<u8> {
    let mut header = vec![1, 0x81, 0, 0, 0, 0];
    header.extend(length.to_ne_bytes());
    header.extend([0; 8]);
    header
}

/// A whole reply.
pub(super) fn reply(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut reply = header(u16::try_from(16 + entries.len() * 72).unwrap());
    reply.extend(entries.concat());
    reply
}

/// A path to the GID of this byte.
pub(super) fn path(flags: u32, destination: u8) -> Vec<u8> {
    let mut record = vec![0; 8];
    record.extend([destination; 16]);
    entry(flags, 0x10, &record)
}

/// An address, of the source if the flag is 1.
pub(super) fn ip(flags: u32, bytes: &[u8]) -> Vec<u8> {
    let kind = if bytes.len() == 4 { 2 } else { 3 };
    entry(flags, kind, bytes)
}
