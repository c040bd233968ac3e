//! The messages over UDP by which sockets learn each other's queue pairs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TAG: [u8; 4] = [0x55; 4];
const V4_SIZE: u8 = 16;
const V6_SIZE: u8 = 28;
/// Queue pair numbers have 24 bits.
const MAX_QP_NUMBER: u32 = 0xff_ffff;

/// What a [`ResolutionMessage`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolutionKind {
    /// It carries a datagram, and asks for the number of the receiver's queue pair.
    Data,
    /// It tells that number, and carries nothing.
    Reply,
}

/// What stands in front of each datagram over UDP, by which sockets learn each other's queue
/// pairs.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | `0x55555555` |
/// | 4 | 1 | version: 4 or 6 |
/// | 5 | 1 | kind: 0 for data, 7 for a reply |
/// | 6 | 1 | size of the header: 16 or 28 |
/// | 8 | 4 | number of the sender's queue pair, big-endian |
/// | 12 | 4 or 16 | address of the sender's queue pair, which receivers ignore |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ds_udp_header")]
pub struct ResolutionMessage {
    /// What it is for.
    pub kind: ResolutionKind,
    /// The number of the sender's queue pair, 24 bits.
    #[doc(alias = "qpn")]
    pub qp_number: u32,
    /// The address of the sender's queue pair.
    pub address: IpAddr,
}

impl ResolutionMessage {
    /// The message, with the datagram that it carries.
    #[must_use]
    pub fn to_bytes(&self, datagram: &[u8]) -> Vec<u8> {
        let kind = match self.kind {
            ResolutionKind::Data => 0,
            ResolutionKind::Reply => 7,
        };
        let (version, size) = match self.address {
            IpAddr::V4(_) => (4, V4_SIZE),
            IpAddr::V6(_) => (6, V6_SIZE),
        };
        let mut bytes = Vec::with_capacity(usize::from(V6_SIZE) + datagram.len());
        bytes.extend(TAG);
        bytes.extend([version, kind, size, 0]);
        bytes.extend(self.qp_number.to_be_bytes());
        match self.address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
        bytes.extend(datagram);
        bytes
    }

    /// The message in a datagram of UDP, and the datagram that it carries; `None` if it is not
    /// a valid one.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (tag, rest) = bytes.split_first_chunk()?;
        let (&[version, kind, size, _], rest) = rest.split_first_chunk()?;
        let (qp_number, rest) = rest.split_first_chunk()?;
        let (address, datagram) = match (version, size) {
            (4, V4_SIZE) => {
                let (address, datagram) = rest.split_first_chunk::<4>()?;
                (IpAddr::from(Ipv4Addr::from(*address)), datagram)
            }
            (6, V6_SIZE) => {
                let (address, datagram) = rest.split_first_chunk::<16>()?;
                (IpAddr::from(Ipv6Addr::from(*address)), datagram)
            }
            _ => return None,
        };
        let kind = match kind {
            0 => ResolutionKind::Data,
            7 => ResolutionKind::Reply,
            _ => return None,
        };
        let message = Self {
            kind,
            qp_number: u32::from_be_bytes(*qp_number) & MAX_QP_NUMBER,
            address,
        };
        (*tag == TAG).then_some((message, datagram))
    }

    /// The size of the header in front of datagrams, by the family of the address.
    #[must_use]
    pub fn header_size(address: IpAddr) -> usize {
        usize::from(match address {
            IpAddr::V4(_) => V4_SIZE,
            IpAddr::V6(_) => V6_SIZE,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_have_the_layout_of_librdmacm() {
        let data = ResolutionMessage {
            kind: ResolutionKind::Data,
            qp_number: 0x01_02_03,
            address: Ipv4Addr::new(10, 71, 1, 2).into(),
        };
        let header = [
            0x55, 0x55, 0x55, 0x55, 4, 0, 16, 0, 0, 1, 2, 3, 10, 71, 1, 2,
        ];
        assert_eq!(data.to_bytes(b"hello"), [&header[..], b"hello"].concat());
        let reply = ResolutionMessage {
            kind: ResolutionKind::Reply,
            address: Ipv6Addr::LOCALHOST.into(),
            ..data
        };
        let mut header = [0; 28];
        header[..12].copy_from_slice(&[0x55, 0x55, 0x55, 0x55, 6, 7, 28, 0, 0, 1, 2, 3]);
        header[27] = 1;
        assert_eq!(reply.to_bytes(&[]), header);
    }

    #[test]
    fn other_messages_are_invalid() {
        let message = ResolutionMessage {
            kind: ResolutionKind::Data,
            qp_number: 17,
            address: Ipv4Addr::LOCALHOST.into(),
        };
        let valid = message.to_bytes(&[]);
        assert!(ResolutionMessage::parse(&valid).is_some());
        for (at, byte) in [(0, 0x54), (3, 0), (4, 6), (4, 5), (5, 1), (6, 28)] {
            let mut bytes = valid.clone();
            bytes[at] = byte;
            assert_eq!(ResolutionMessage::parse(&bytes), None, "{bytes:?}");
        }
        assert_eq!(ResolutionMessage::parse(&valid[..15]), None);
    }

    proptest! {
        #[test]
        fn what_is_sent_is_received(
            replies: bool,
            qp_number in 0..=MAX_QP_NUMBER,
            address: IpAddr,
            datagram: Vec<u8>,
        ) {
            let kind = if replies { ResolutionKind::Reply } else { ResolutionKind::Data };
            let message = ResolutionMessage { kind, qp_number, address };
            let bytes = message.to_bytes(&datagram);
            prop_assert_eq!(bytes.len(), ResolutionMessage::header_size(address) + datagram.len());
            prop_assert_eq!(ResolutionMessage::parse(&bytes), Some((message, &datagram[..])));
        }

        #[test]
        fn any_bytes_are_parsed(bytes: Vec<u8>) {
            let _ = ResolutionMessage::parse(&bytes);
        }
    }
}
