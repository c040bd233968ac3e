//! Replies of ibacm, checked.

use std::net::IpAddr;

use rdmacm_abi::{PathFlags, PathRecord, PathRecordData};
use rdmacm_core::PathData;
use zerocopy::FromBytes;

use super::message::{ACK, Entry, Header, IPV4, IPV6, LONGEST, PATH, RESOLVE, SOURCE, VERSION};

/// What ibacm knows about a destination; empty by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The source address, if it chose one.
    pub(crate) source: Option<IpAddr>,
    /// The paths, best first.
    pub(crate) paths: Vec<PathData>,
}

/// A valid header of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyHeader {
    /// The number of bytes that follow.
    pub(super) length: usize,
    /// 0, or the error.
    status: u8,
}

impl ReplyHeader {
    /// Parses the header of an answer to a [`Request`](super::Request); the reason if it is
    /// invalid.
    pub(super) fn read(header: &[u8; 16]) -> Result<Self, &'static str> {
        let header = Header::read_from_bytes(header).map_err(|_| "its header is short")?;
        if header.version != VERSION {
            return Err("its version is not 1");
        }
        // ibacm sets the acknowledge bit if it refuses a request.
        if header.operation & !ACK != RESOLVE {
            return Err("it answers another operation");
        }
        if header.transaction.get() != 0 {
            return Err("its transaction is not the request's");
        }
        let whole = usize::from(header.length.get());
        let length = whole
            .checked_sub(size_of::<Header>())
            .filter(|length| whole <= LONGEST && length % size_of::<Entry>() == 0)
            .ok_or("its length is not that of a header and entries")?;
        Ok(Self {
            length,
            status: header.status,
        })
    }

    /// The reply; empty if the status is not 0. Ignores entries other than paths and the
    /// source.
    pub(super) fn with_entries(self, entries: &[u8]) -> Reply {
        let mut reply = Reply::default();
        if self.status != 0 {
            return reply;
        }
        for entry in entries.chunks_exact(size_of::<Entry>()) {
            if let Ok(entry) = Entry::read_from_bytes(entry) {
                reply.take(&entry);
            }
        }
        reply
    }
}

impl Reply {
    fn take(&mut self, entry: &Entry) {
        let is_source = entry.flags.get() & SOURCE != 0 && self.source.is_none();
        match entry.kind.get() {
            PATH => self.paths.extend(path(entry)),
            IPV4 if is_source => self.source = address::<4>(entry),
            IPV6 if is_source => self.source = address::<16>(entry),
            _ => {}
        }
    }
}

/// An entry of kind [`PATH`] has the layout of path data.
fn path(entry: &Entry) -> Option<PathData> {
    let record = PathRecord::read_from_bytes(&entry.info).ok()?;
    let flags = PathFlags::from_bits_retain(entry.flags.get());
    Some(PathData::from(&PathRecordData::new(flags, record)))
}

fn address<const LENGTH: usize>(entry: &Entry) -> Option<IpAddr>
where
    IpAddr: From<[u8; LENGTH]>,
{
    entry
        .info
        .first_chunk::<LENGTH>()
        .copied()
        .map(IpAddr::from)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{header, ip, path, reply};
    use super::*;
    use proptest::prelude::*;

    fn read(message: &[u8]) -> Result<Reply, &'static str> {
        let header = message.first_chunk().unwrap();
        let announced = ReplyHeader::read(header)?;
        assert_eq!(announced.length, message.len() - 16);
        Ok(announced.with_entries(&message[16..]))
    }

    #[test]
    fn paths_and_the_first_source_are_taken() {
        let entries = [
            path(0x2b, 1),
            ip(1, &[10, 1, 0, 3]),
            path(4, 2),
            ip(1, &[10, 1, 0, 4]),
        ];
        let reply = read(&reply(&entries)).unwrap();
        assert_eq!(reply.source, Some([10, 1, 0, 3].into()));
        let told: Vec<_> = reply
            .paths
            .iter()
            .map(|path| (path.flags.bits(), path.record.dgid.0[0]))
            .collect();
        assert_eq!(told, [(0x2b, 1), (4, 2)]);
    }

    #[test]
    fn a_destination_is_no_source() {
        let reply = read(&reply(&[ip(2, &[10, 1, 0, 7])])).unwrap();
        assert_eq!(reply, Reply::default());
        let six = [0xfd; 16];
        let reply = read(&super::super::testing::reply(&[ip(3, &six)])).unwrap();
        assert_eq!(reply.source, Some(six.into()));
    }

    #[test]
    fn unknown_kinds_are_ignored() {
        let mut entry = path(0x2b, 1);
        entry[4..6].copy_from_slice(&0x77_u16.to_ne_bytes());
        assert_eq!(read(&reply(&[entry])), Ok(Reply::default()));
    }

    #[test]
    fn a_refusal_is_empty_whatever_follows() {
        for status in [1, 2, 3, 5, 6, 7, 8, 9, 10, 255] {
            let mut message = reply(&[path(0x2b, 1)]);
            message[2] = status;
            assert_eq!(read(&message), Ok(Reply::default()));
            message = header(16);
            message[2] = status;
            assert_eq!(read(&message), Ok(Reply::default()));
        }
    }

    #[test]
    fn invalid_headers_are_rejected() {
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut message = header(16);
            change(&mut message);
            ReplyHeader::read(message.first_chunk().unwrap()).is_err()
        };
        assert!(!refused(&|_| {}));
        assert!(refused(&|message| message[0] = 2));
        assert!(refused(&|message| message[1] = 0x82));
        assert!(refused(&|message| message[1] = 0x41));
        assert!(!refused(&|message| message[1] = 1));
        assert!(refused(&|message| message[8] = 1));
        for length in [0, 15, 17, 16 + 71, 16 + 73, 16 + 9 * 72, 65535] {
            assert!(refused(&|message| *message = header(length)), "{length}");
        }
        for entries in 0..=8 {
            assert!(!refused(&|message| *message = header(16 + entries * 72)));
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 16..700)) {
            if let Ok(announced) = ReplyHeader::read(bytes.first_chunk().unwrap()) {
                announced.with_entries(&bytes[16..]);
            }
        }
    }
}
