//! Requests to ibacm.

use rdmacm_abi::{PathRecord, PathRecordData};
use rdmacm_core::{CmAddr, PathData};
use zerocopy::native_endian::{U16, U32, U64};
use zerocopy::{FromZeros, IntoBytes};

use super::message::{DESTINATION, Entry, Header, IPV4, IPV6, NO_DELAY, PATH};
use super::message::{RESOLVE, SOURCE, VERSION};

/// A request for the path to a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'hints> {
    pub(crate) source: Option<CmAddr>,
    pub(crate) destination: CmAddr,
    /// The paths of the hints. A single one restricts the paths asked for.
    pub(crate) paths: &'hints [PathData],
    /// Whether to ask only for what ibacm has cached.
    pub(crate) no_delay: bool,
}

impl Request<'_> {
    /// The message, byte for byte as librdmacm sends it.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let source = self.source.and_then(|source| ip_entry(source, SOURCE));
        let no_delay = if self.no_delay { NO_DELAY } else { 0 };
        let destination = ip_entry(self.destination, DESTINATION | no_delay);
        let entries: Vec<Entry> = [source, destination, self.path_entry()]
            .into_iter()
            .flatten()
            .collect();
        let entries = entries.as_bytes();
        // At most three entries, so the length fits.
        let length = u16::try_from(size_of::<Header>() + entries.len()).unwrap_or(u16::MAX);
        let header = Header {
            version: VERSION,
            operation: RESOLVE,
            status: 0,
            scratch: [0; 3],
            length: U16::new(length),
            transaction: U64::ZERO,
        };
        [header.as_bytes(), entries].concat()
    }

    /// Native InfiniBand addresses are sent as ends of a path.
    fn path_entry(&self) -> Option<Entry> {
        let ends = [self.source, Some(self.destination)].map(|end| match end? {
            CmAddr::Ib(address) => Some(address.gid.0),
            CmAddr::V4(_) | CmAddr::V6(_) => None,
        });
        if self.paths.is_empty() && ends == [None, None] {
            return None;
        }
        let mut record = match self.paths {
            [path] => PathRecordData::from(path).record,
            // As librdmacm: one path, or an empty one.
            _ => PathRecord::new_zeroed(),
        };
        let [source, destination] = ends;
        record.source_gid = source.unwrap_or(record.source_gid);
        record.destination_gid = destination.unwrap_or(record.destination_gid);
        Some(entry(0, PATH, record.as_bytes()))
    }
}

fn ip_entry(address: CmAddr, flags: u32) -> Option<Entry> {
    match address {
        CmAddr::V4(address) => Some(entry(flags, IPV4, &address.ip().octets())),
        CmAddr::V6(address) => Some(entry(flags, IPV6, &address.ip().octets())),
        CmAddr::Ib(_) => None,
    }
}

fn entry(flags: u32, kind: u16, bytes: &[u8]) -> Entry {
    let mut info = [0; 64];
    for (permit, byte) in info.iter_mut().zip(bytes) {
        *permit = *byte;
    }
    Entry {
        flags: U32::new(flags),
        kind: U16::new(kind),
        reserved: U16::ZERO,
        info,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm_core::{Gid, IbAddr};

    const V4: ([u8; 4], u16) = ([10, 1, 0, 7], 7471);
    const V6: ([u16; 8], u16) = ([0xfd71, 0, 0, 0, 0, 0, 0, 7], 7471);

    fn to(destination: impl Into<CmAddr>) -> Request<'static> {
        Request {
            source: None,
            destination: destination.into(),
            paths: &[],
            no_delay: false,
        }
    }

    fn path() -> PathData {
        let mut record = PathRecord::new_zeroed();
        record.source_gid = [1; 16];
        record.destination_gid = [2; 16];
        PathData::from(&PathRecordData::new(PathData::USABLE, record))
    }

    fn gid(byte: u8) -> CmAddr {
        let CmAddr::Ib(any) = CmAddr::any(rdmacm_core::Family::Ib) else {
            unreachable!()
        };
        let gid = Gid([byte; 16]);
        IbAddr { gid, ..any }.into()
    }

    /// Flags, kind and info.
    type Sent = (u32, u16, Vec<u8>);

    /// The header, and each entry.
    fn sent(request: Request<'_>) -> (Vec<u8>, Vec<Sent>) {
        let bytes = request.to_bytes();
        let (header, entries) = bytes.split_at(16);
        let entries = entries.chunks_exact(72).map(|entry| {
            let flags = u32::from_ne_bytes(entry[..4].try_into().unwrap());
            let kind = u16::from_ne_bytes(entry[4..6].try_into().unwrap());
            assert_eq!(entry[6..8], [0; 2]);
            (flags, kind, entry[8..].to_vec())
        });
        (header.to_vec(), entries.collect())
    }

    fn padded(bytes: &[u8]) -> Vec<u8> {
        let mut info = bytes.to_vec();
        info.resize(64, 0);
        info
    }

    #[test]
    fn a_destination_is_one_entry() {
        let (header, entries) = sent(to(V4));
        let mut expected = vec![1, 1, 0, 0, 0, 0];
        expected.extend(88_u16.to_ne_bytes());
        expected.extend([0; 8]);
        assert_eq!(header, expected);
        assert_eq!(entries, [(2, 2, padded(&[10, 1, 0, 7]))]);
        let (_, entries) = sent(to(V6));
        let address = [0xfd, 0x71, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(entries, [(2, 3, padded(&address))]);
    }

    #[test]
    fn a_source_comes_first_and_no_delay_is_a_flag_of_the_destination() {
        let mut request = to(V4);
        request.source = Some(([10, 1, 0, 3], 9).into());
        request.no_delay = true;
        let (_, entries) = sent(request);
        let source = (1, 2, padded(&[10, 1, 0, 3]));
        let destination = (2 | 1 << 30, 2, padded(&[10, 1, 0, 7]));
        assert_eq!(entries, [source, destination]);
    }

    #[test]
    fn the_request_contains_one_path_and_an_empty_one_for_several() {
        let record = PathRecordData::from(&path()).record;
        for (paths, expected) in [
            (vec![path()], record.as_bytes().to_vec()),
            (vec![path(), path()], vec![0; 64]),
        ] {
            let mut request = to(V4);
            request.paths = &paths;
            let (_, entries) = sent(request);
            assert_eq!(entries[1], (0, 0x10, expected));
        }
    }

    #[test]
    fn infiniband_addresses_are_the_ends_of_a_path() {
        let mut request = to(gid(9));
        let (_, entries) = sent(request);
        let mut expected = padded(&[0; 8]);
        expected[8..24].fill(9);
        assert_eq!(entries, [(0, 0x10, expected.clone())]);
        request.source = Some(gid(8));
        let (_, entries) = sent(request);
        expected[24..40].fill(8);
        assert_eq!(entries, [(0, 0x10, expected)]);
        let paths = [path()];
        request.source = None;
        request.paths = &paths;
        let (_, entries) = sent(request);
        assert_eq!(entries[0].2[8..24], [9; 16]);
        assert_eq!(entries[0].2[24..40], [1; 16]);
    }
}
