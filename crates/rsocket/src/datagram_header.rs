//! The header of a datagram between datagram queue pairs.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// The size of librdmacm's buffers for one datagram, with its header, in bytes.
pub const DATAGRAM_BUFFER: usize = 2048;

const V4_SIZE: u8 = 8;
const V6_SIZE: u8 = 24;

/// What stands in front of each datagram between queue pairs: the IP address and the UDP port
/// of the sender's socket.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 1 | version: 4 or 6 |
/// | 1 | 1 | size of the header: 8 or 24 |
/// | 2 | 2 | port, big-endian |
/// | 4 | 4 | IPv4: address |
/// | 4 | 4 | IPv6: flow information, as in `sockaddr_in6` |
/// | 8 | 16 | IPv6: address |
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "ds_header")]
pub struct DatagramHeader(Vec<u8>);

impl DatagramHeader {
    /// The header of datagrams from this socket.
    #[must_use]
    pub fn new(source: SocketAddr) -> Self {
        let mut bytes = Vec::with_capacity(V6_SIZE.into());
        let port = source.port().to_be_bytes();
        match source {
            SocketAddr::V4(source) => {
                bytes.extend([4, V4_SIZE]);
                bytes.extend(port);
                bytes.extend(source.ip().octets());
            }
            SocketAddr::V6(source) => {
                bytes.extend([6, V6_SIZE]);
                bytes.extend(port);
                bytes.extend(source.flowinfo().to_ne_bytes());
                bytes.extend(source.ip().octets());
            }
        }
        Self(bytes)
    }

    /// The bytes to send in front of a datagram.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The sender of a datagram that was received, and what follows its header; `None` if it has
    /// no valid one.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<(SocketAddr, &[u8])> {
        let (&[version, size], rest) = datagram.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*port);
        match (version, size) {
            (4, V4_SIZE) => {
                let (address, bytes) = rest.split_first_chunk::<4>()?;
                let source = SocketAddrV4::new(Ipv4Addr::from(*address), port);
                Some((source.into(), bytes))
            }
            (6, V6_SIZE) => {
                let (flow, rest) = rest.split_first_chunk()?;
                let (address, bytes) = rest.split_first_chunk::<16>()?;
                let flow = u32::from_ne_bytes(*flow);
                let source = SocketAddrV6::new(Ipv6Addr::from(*address), port, flow, 0);
                Some((source.into(), bytes))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_have_the_layout_of_librdmacm() {
        let v4 = DatagramHeader::new("10.71.1.2:7174".parse().unwrap());
        assert_eq!(v4.as_bytes(), [4, 8, 0x1c, 0x06, 10, 71, 1, 2]);
        let source = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 258, 7_u32.to_be(), 0);
        let v6 = DatagramHeader::new(source.into());
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&[6, 24, 1, 2, 0, 0, 0, 7]);
        bytes[23] = 1;
        assert_eq!(v6.as_bytes(), bytes);
    }

    #[test]
    fn other_versions_and_sizes_are_invalid() {
        let valid = [4, 8, 1, 2, 10, 71, 1, 2];
        assert!(DatagramHeader::parse(&valid).is_some());
        for (at, byte) in [(0, 5), (0, 6), (1, 7), (1, 24)] {
            let mut header = valid;
            header[at] = byte;
            assert_eq!(DatagramHeader::parse(&header), None, "{header:?}");
        }
        assert_eq!(DatagramHeader::parse(&valid[..7]), None);
        assert_eq!(DatagramHeader::parse(&[6, 24, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_received(source: SocketAddr, bytes: Vec<u8>) {
            let source = without_scope(source);
            let datagram = [DatagramHeader::new(source).as_bytes(), &bytes].concat();
            prop_assert_eq!(DatagramHeader::parse(&datagram), Some((source, &bytes[..])));
        }

        #[test]
        fn any_bytes_are_parsed(bytes: Vec<u8>) {
            if let Some((source, rest)) = DatagramHeader::parse(&bytes) {
                let header = DatagramHeader::new(source);
                prop_assert_eq!([header.as_bytes(), rest].concat(), bytes);
            }
        }
    }

    fn without_scope(mut address: SocketAddr) -> SocketAddr {
        if let SocketAddr::V6(address) = &mut address {
            address.set_scope_id(0);
        }
        address
    }
}
