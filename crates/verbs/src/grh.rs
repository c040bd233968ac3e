//! The global route header of a datagram.

use rdmacm_core::{AhAttr, Gid, GlobalRoute};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::completion::DatagramSource;
use crate::gid_table::GidEntry;

/// The global route header: the first 40 bytes of a received datagram that has one.
///
/// On RoCE v2 it contains the IP header: that of IPv6 has the same length, that of IPv4 is in
/// the last 20 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "ibv_grh")]
pub struct Grh {
    /// The sender's GID; `::ffff:a.b.c.d` for IPv4.
    #[doc(alias = "sgid")]
    pub source: Gid,
    /// The destination GID: a local one, or that of a multicast group.
    #[doc(alias = "dgid")]
    pub destination: Gid,
    /// The flow label, 20 bits; 0 for IPv4.
    pub flow_label: u32,
    /// The traffic class; the type of service for IPv4.
    pub traffic_class: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The next header: 17, UDP, on RoCE v2.
    #[doc(alias = "next_hdr")]
    pub next_header: u8,
}

/// A global route header or an IPv6 header. Source: IBTA Vol 1 §8.3; RFC 8200 §3.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Global {
    /// 4 bits, 8 bits, 20 bits.
    version_class_flow: U32,
    _length: U16,
    next_header: u8,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

/// An IPv4 header. Source: RFC 791 §3.1.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct V4 {
    /// 4 bits each, the length in words.
    version_length: u8,
    service: u8,
    _length: U16,
    _fragment: U32,
    time_to_live: u8,
    protocol: u8,
    _checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

/// The offset of an IPv4 header.
const V4_OFFSET: usize = 20;
const UDP: u8 = 17;

impl Grh {
    /// Parses the header at the beginning of `bytes`; `None` if they are fewer than 40, or not a
    /// valid header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (global, _) = Global::read_from_prefix(bytes).ok()?;
        let v4 = bytes.get(V4_OFFSET..size_of::<Global>())?;
        let is_v6 = global.version_class_flow.get() >> 28 == 6;
        // The bytes before an IPv4 header are arbitrary.
        if is_v4(v4) && (!is_v6 || is_intact(v4)) {
            let (v4, _) = V4::read_from_prefix(v4).ok()?;
            return Some(v4.into());
        }
        is_v6.then(|| global.into())
    }

    /// Whether this entry has the datagram's destination GID and RoCE version.
    fn matches(&self, entry: &GidEntry) -> bool {
        let is_v2 = self.next_header == UDP;
        let kind = entry.kind.as_deref();
        let same_version = kind.is_none_or(|kind| is_v2 == (kind == "RoCE v2"));
        entry.gid == self.destination && same_version
    }
}

/// Version 4 without options: RoCE v2 uses none.
fn is_v4(header: &[u8]) -> bool {
    header.first() == Some(&0x45)
}

/// Whether the checksum is valid. Source: RFC 1071.
fn is_intact(header: &[u8]) -> bool {
    let words = header.chunks_exact(2);
    let words = words.filter_map(|word| word.try_into().ok().map(u16::from_be_bytes));
    let sum: u32 = words.map(u32::from).sum();
    // The carry of ten words is less than 16 bits.
    (sum & 0xffff) + (sum >> 16) == 0xffff
}

impl From<Global> for Grh {
    fn from(header: Global) -> Self {
        let [traffic_class, ..] = (header.version_class_flow.get() << 4).to_be_bytes();
        Self {
            source: Gid(header.source),
            destination: Gid(header.destination),
            flow_label: header.version_class_flow.get() & 0xf_ffff,
            traffic_class,
            hop_limit: header.hop_limit,
            next_header: header.next_header,
        }
    }
}

impl From<V4> for Grh {
    fn from(header: V4) -> Self {
        let gid = |address: [u8; 4]| Gid::from(std::net::Ipv4Addr::from(address).to_ipv6_mapped());
        Self {
            source: gid(header.source),
            destination: gid(header.destination),
            flow_label: 0,
            traffic_class: header.service,
            hop_limit: header.time_to_live,
            next_header: header.protocol,
        }
    }
}

impl DatagramSource {
    /// The address of the sender, for
    /// [`create_address_handle`](crate::ProtectionDomain::create_address_handle).
    /// `datagram` is the received datagram, whose first 40 bytes are the GRH, `port` the port
    /// that received it, and `gids` the port's [GIDs](crate::Context::gids).
    ///
    /// `None` if there is no valid GRH, or its destination is none of these GIDs, as for a
    /// datagram to a multicast group. Source: `ibv_init_ah_from_wc(3)`, `ibv_create_ah_from_wc(3)`.
    #[must_use]
    #[doc(alias = "ibv_init_ah_from_wc", alias = "ibv_create_ah_from_wc")]
    pub fn reply_address(&self, datagram: &[u8], port: u8, gids: &[GidEntry]) -> Option<AhAttr> {
        if !self.has_grh {
            return Some(self.local(port));
        }
        let header = Grh::parse(datagram)?;
        let entry = gids.iter().find(|entry| header.matches(entry))?;
        self.global(&header, port, entry)
    }

    /// The address of the sender, with `from` as the source GID whatever the datagram's
    /// destination was: for a datagram to a multicast group.
    #[must_use]
    pub fn reply_address_from(&self, datagram: &[u8], port: u8, from: &GidEntry) -> Option<AhAttr> {
        if !self.has_grh {
            return Some(self.local(port));
        }
        self.global(&Grh::parse(datagram)?, port, from)
    }

    fn local(&self, port: u8) -> AhAttr {
        AhAttr {
            destination_lid: self.lid,
            service_level: self.service_level,
            source_path_bits: self.path_bits,
            port_number: port,
            ..AhAttr::default()
        }
    }

    fn global(&self, header: &Grh, port: u8, entry: &GidEntry) -> Option<AhAttr> {
        Some(AhAttr {
            is_global: 1,
            grh: GlobalRoute {
                destination_gid: header.source.0,
                flow_label: header.flow_label,
                source_gid_index: entry.index.try_into().ok()?,
                hop_limit: header.hop_limit,
                traffic_class: header.traffic_class,
                ..GlobalRoute::default()
            },
            ..self.local(port)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRH_SIZE: usize = 40;
    /// From 10.71.1.1 to 10.71.1.2, with UDP and without a checksum.
    const V4: [u8; 20] = [
        0x45, 0x2c, 0, 60, 0x12, 0x34, 0x40, 0, 63, 17, 0, 0, 10, 71, 1, 1, 10, 71, 1, 2,
    ];
    const V4_CHECKSUM: [u8; 2] = [0x12, 0xc1];

    fn gid(text: &str) -> Gid {
        Gid::from(text.parse::<std::net::Ipv6Addr>().unwrap())
    }

    fn v6() -> [u8; GRH_SIZE] {
        let mut header = [0; GRH_SIZE];
        header[..8].copy_from_slice(&[0x62, 0xc5, 0x43, 0x21, 0, 20, 17, 64]);
        header[8..24].copy_from_slice(&gid("fd71:1::1").0);
        header[24..].copy_from_slice(&gid("fd71:1::2").0);
        header
    }

    fn v4(before: u8) -> [u8; GRH_SIZE] {
        let mut header = [before; GRH_SIZE];
        header[V4_OFFSET..].copy_from_slice(&V4);
        header
    }

    fn with_checksum(mut header: [u8; GRH_SIZE]) -> [u8; GRH_SIZE] {
        header[V4_OFFSET + 10..V4_OFFSET + 12].copy_from_slice(&V4_CHECKSUM);
        header
    }

    fn parsed_v4() -> Grh {
        Grh {
            source: gid("::ffff:10.71.1.1"),
            destination: gid("::ffff:10.71.1.2"),
            flow_label: 0,
            traffic_class: 0x2c,
            hop_limit: 63,
            next_header: UDP,
        }
    }

    #[test]
    fn an_ipv6_header_is_parsed() {
        let header = Grh {
            source: gid("fd71:1::1"),
            destination: gid("fd71:1::2"),
            flow_label: 0x5_4321,
            traffic_class: 0x2c,
            hop_limit: 64,
            next_header: UDP,
        };
        assert_eq!(Grh::parse(&v6()), Some(header));
        let mut longer = v6().to_vec();
        longer.push(9);
        assert_eq!(Grh::parse(&longer), Some(header));
    }

    #[test]
    fn an_ipv4_header_follows_arbitrary_bytes() {
        // Datagrams of the soft device to itself have no checksum.
        assert_eq!(Grh::parse(&v4(0)), Some(parsed_v4()));
        for before in [0, 0x45, 0x60, 0xff] {
            let header = with_checksum(v4(before));
            assert_eq!(Grh::parse(&header), Some(parsed_v4()), "{before:#x}");
        }
    }

    #[test]
    fn an_ipv6_address_that_looks_like_an_ipv4_header_is_an_address() {
        let mut header = v6();
        header[V4_OFFSET] = 0x45;
        let parsed = Grh::parse(&header).unwrap();
        assert_eq!(parsed.destination, gid("fd71:1::2"));
    }

    #[test]
    fn an_invalid_header_is_none() {
        assert_eq!(Grh::parse(&[]), None);
        assert_eq!(Grh::parse(&v6()[..39]), None);
        assert_eq!(Grh::parse(&[0; GRH_SIZE]), None);
        let mut options = v4(0);
        options[V4_OFFSET] = 0x46;
        assert_eq!(Grh::parse(&options), None);
    }

    fn entry(index: u32, text: &str, kind: Option<&str>) -> GidEntry {
        GidEntry {
            index,
            gid: gid(text),
            kind: kind.map(str::to_owned),
            interface: None,
        }
    }

    const SOURCE: DatagramSource = DatagramSource {
        qp_number: 17,
        has_grh: true,
        pkey_index: 0,
        lid: 5,
        path_bits: 1,
        service_level: 3,
    };

    #[test]
    fn the_reply_address_uses_the_destination_gid_as_source() {
        let gids = [
            entry(0, "fe80::1", None),
            entry(1, "::ffff:10.71.1.2", Some("IB/RoCE v1")),
            entry(2, "::ffff:10.71.1.2", Some("RoCE v2")),
            entry(3, "fd71:1::2", None),
        ];
        let reply = SOURCE.reply_address(&v4(0), 1, &gids).unwrap();
        assert_eq!((reply.is_global, reply.port_number), (1, 1));
        assert_eq!((reply.destination_lid, reply.service_level), (5, 3));
        assert_eq!(reply.source_path_bits, 1);
        assert_eq!(reply.grh.destination_gid, gid("::ffff:10.71.1.1").0);
        assert_eq!(reply.grh.source_gid_index, 2);
        assert_eq!((reply.grh.hop_limit, reply.grh.traffic_class), (63, 0x2c));
        let reply = SOURCE.reply_address(&v6(), 1, &gids).unwrap();
        assert_eq!(reply.grh.destination_gid, gid("fd71:1::1").0);
        assert_eq!(reply.grh.source_gid_index, 3);
        assert_eq!(reply.grh.flow_label, 0x5_4321);
    }

    #[test]
    fn the_reply_address_of_a_groups_datagram_uses_the_given_gid() {
        let mut to_group = v4(0);
        to_group[36..].copy_from_slice(&[239, 71, 0, 1]);
        let own = entry(4, "::ffff:10.71.1.2", Some("RoCE v2"));
        assert_eq!(
            SOURCE.reply_address(&to_group, 1, std::slice::from_ref(&own)),
            None
        );
        let reply = SOURCE.reply_address_from(&to_group, 1, &own).unwrap();
        assert_eq!(reply.grh.destination_gid, gid("::ffff:10.71.1.1").0);
        assert_eq!(reply.grh.source_gid_index, 4);
        assert_eq!(SOURCE.reply_address_from(&[], 1, &own), None);
    }

    #[test]
    fn another_destination_has_no_reply_address() {
        let gids = [
            entry(0, "fd71:1::9", None),
            entry(1, "fd71:1::2", Some("IB/RoCE v1")),
        ];
        assert_eq!(SOURCE.reply_address(&v6(), 1, &gids), None);
        assert_eq!(SOURCE.reply_address(&[], 1, &gids), None);
        // RoCE v1: a GRH instead of an IP header.
        let mut older = v6();
        older[6] = 0x1b;
        let reply = SOURCE.reply_address(&older, 1, &gids).unwrap();
        assert_eq!(reply.grh.source_gid_index, 1);
    }

    #[test]
    fn without_a_grh_the_reply_address_is_local() {
        let local = DatagramSource {
            has_grh: false,
            ..SOURCE
        };
        let reply = local.reply_address(&[], 2, &[]).unwrap();
        assert_eq!((reply.is_global, reply.port_number), (0, 2));
        assert_eq!(reply.destination_lid, 5);
    }
}
