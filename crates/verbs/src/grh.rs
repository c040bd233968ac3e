//! The route header in front of a datagram.

use rdmacm_core::{AhAttr, Gid, GlobalRoute};
use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::completion::DatagramSource;
use crate::gid_table::GidEntry;

/// The first 40 bytes of a datagram that came with a route: between whom it went, and
/// how.
///
/// On RoCE v2 it is the IP header: IPv6's is as long, IPv4's stands in the last 20
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "ibv_grh")]
pub struct Grh {
    /// The sender's GID; of IPv4, `::ffff:a.b.c.d`.
    #[doc(alias = "sgid")]
    pub source: Gid,
    /// The GID that it was sent to: this side's, or a group's.
    #[doc(alias = "dgid")]
    pub destination: Gid,
    /// The flow label, 20 bits; 0 of IPv4.
    pub flow_label: u32,
    /// The traffic class; of IPv4, the type of service.
    pub traffic_class: u8,
    /// How many hops were left.
    pub hop_limit: u8,
    /// What stands behind it: 17, UDP, on RoCE v2.
    #[doc(alias = "next_hdr")]
    pub next_header: u8,
}

/// A global route header, and IPv6's. Source: IBTA Vol 1 §8.3; RFC 8200 §3.
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

/// IPv4's. Source: RFC 791 §3.1.
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

/// Where IPv4's begins.
const V4_AT: usize = 20;
const UDP: u8 = 17;

impl Grh {
    /// Reads what stands at the beginning of `bytes`; `None` where they are fewer than
    /// 40, or are no such header.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (global, _) = Global::read_from_prefix(bytes).ok()?;
        let v4 = bytes.get(V4_AT..size_of::<Global>())?;
        let is_v6 = global.version_class_flow.get() >> 28 == 6;
        // What stands in front of IPv4's header may be anything.
        if is_v4(v4) && (!is_v6 || is_intact(v4)) {
            let (v4, _) = V4::read_from_prefix(v4).ok()?;
            return Some(v4.into());
        }
        is_v6.then(|| global.into())
    }

    /// Whether the datagram was sent to this GID, in what is spoken under it.
    fn is_to(&self, entry: &GidEntry) -> bool {
        let is_v2 = self.next_header == UDP;
        let kind = entry.kind.as_deref();
        let speaks = kind.is_none_or(|kind| is_v2 == (kind == "RoCE v2"));
        entry.gid == self.destination && speaks
    }
}

/// Version 4, without options, which RoCE v2 has none of.
fn is_v4(header: &[u8]) -> bool {
    header.first() == Some(&0x45)
}

/// Whether the checksum is right. Source: RFC 1071.
fn is_intact(header: &[u8]) -> bool {
    let words = header.chunks_exact(2);
    let words = words.filter_map(|word| word.try_into().ok().map(u16::from_be_bytes));
    let sum: u32 = words.map(u32::from).sum();
    // Ten words carry less than 16 bits.
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
    /// The way back to the sender, for
    /// [`create_address_handle`](crate::ProtectionDomain::create_address_handle):
    /// `datagram` are the bytes received, of which the first 40 are the route, `port`
    /// the port they came through, and `gids` what it is [known by](crate::Context::gids).
    ///
    /// `None` where the route is none, or leads to none of these GIDs, as that of a
    /// group's datagram does.
    #[must_use]
    #[doc(alias = "ibv_init_ah_from_wc", alias = "ibv_create_ah_from_wc")]
    pub fn reply_address(&self, datagram: &[u8], port: u8, gids: &[GidEntry]) -> Option<AhAttr> {
        if !self.has_grh {
            return Some(self.local(port));
        }
        let header = Grh::parse(datagram)?;
        let entry = gids.iter().find(|entry| header.is_to(entry))?;
        self.way_from(&header, port, entry)
    }

    /// The same from this GID of the port's, wherever the datagram was sent to: the way
    /// back for one to a group.
    #[must_use]
    pub fn reply_address_from(&self, datagram: &[u8], port: u8, from: &GidEntry) -> Option<AhAttr> {
        if !self.has_grh {
            return Some(self.local(port));
        }
        self.way_from(&Grh::parse(datagram)?, port, from)
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

    fn way_from(&self, header: &Grh, port: u8, entry: &GidEntry) -> Option<AhAttr> {
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

    const ROUTE: usize = 40;
    /// From 10.71.1.1 to 10.71.1.2, with UDP behind it, and no checksum.
    const V4: [u8; 20] = [
        0x45, 0x2c, 0, 60, 0x12, 0x34, 0x40, 0, 63, 17, 0, 0, 10, 71, 1, 1, 10, 71, 1, 2,
    ];
    const V4_CHECKSUM: [u8; 2] = [0x12, 0xc1];

    fn gid(text: &str) -> Gid {
        Gid::from(text.parse::<std::net::Ipv6Addr>().unwrap())
    }

    fn v6() -> [u8; ROUTE] {
        let mut header = [0; ROUTE];
        header[..8].copy_from_slice(&[0x62, 0xc5, 0x43, 0x21, 0, 20, 17, 64]);
        header[8..24].copy_from_slice(&gid("fd71:1::1").0);
        header[24..].copy_from_slice(&gid("fd71:1::2").0);
        header
    }

    fn v4(before: u8) -> [u8; ROUTE] {
        let mut header = [before; ROUTE];
        header[V4_AT..].copy_from_slice(&V4);
        header
    }

    fn with_checksum(mut header: [u8; ROUTE]) -> [u8; ROUTE] {
        header[V4_AT + 10..V4_AT + 12].copy_from_slice(&V4_CHECKSUM);
        header
    }

    fn of_v4() -> Grh {
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
    fn an_ipv6_header_is_read() {
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
    fn an_ipv4_header_stands_behind_anything() {
        // The soft device's own datagrams have no checksum.
        assert_eq!(Grh::parse(&v4(0)), Some(of_v4()));
        for before in [0, 0x45, 0x60, 0xff] {
            let header = with_checksum(v4(before));
            assert_eq!(Grh::parse(&header), Some(of_v4()), "{before:#x}");
        }
    }

    #[test]
    fn an_ipv6_address_that_looks_like_an_ipv4_header_is_an_address() {
        let mut header = v6();
        header[V4_AT] = 0x45;
        let parsed = Grh::parse(&header).unwrap();
        assert_eq!(parsed.destination, gid("fd71:1::2"));
    }

    #[test]
    fn what_is_no_header_is_none() {
        assert_eq!(Grh::parse(&[]), None);
        assert_eq!(Grh::parse(&v6()[..39]), None);
        assert_eq!(Grh::parse(&[0; ROUTE]), None);
        let mut options = v4(0);
        options[V4_AT] = 0x46;
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
        queue_pair: 17,
        has_grh: true,
        pkey_index: 0,
        lid: 5,
        path_bits: 1,
        service_level: 3,
    };

    #[test]
    fn the_way_back_leads_from_where_it_was_sent_to() {
        let gids = [
            entry(0, "fe80::1", None),
            entry(1, "::ffff:10.71.1.2", Some("IB/RoCE v1")),
            entry(2, "::ffff:10.71.1.2", Some("RoCE v2")),
            entry(3, "fd71:1::2", None),
        ];
        let way = SOURCE.reply_address(&v4(0), 1, &gids).unwrap();
        assert_eq!((way.is_global, way.port_number), (1, 1));
        assert_eq!((way.destination_lid, way.service_level), (5, 3));
        assert_eq!(way.source_path_bits, 1);
        assert_eq!(way.grh.destination_gid, gid("::ffff:10.71.1.1").0);
        assert_eq!(way.grh.source_gid_index, 2);
        assert_eq!((way.grh.hop_limit, way.grh.traffic_class), (63, 0x2c));
        let way = SOURCE.reply_address(&v6(), 1, &gids).unwrap();
        assert_eq!(way.grh.destination_gid, gid("fd71:1::1").0);
        assert_eq!(way.grh.source_gid_index, 3);
        assert_eq!(way.grh.flow_label, 0x5_4321);
    }

    #[test]
    fn the_way_back_of_a_groups_datagram_is_from_a_gid_of_the_callers() {
        let mut to_group = v4(0);
        to_group[36..].copy_from_slice(&[239, 71, 0, 1]);
        let own = entry(4, "::ffff:10.71.1.2", Some("RoCE v2"));
        assert_eq!(
            SOURCE.reply_address(&to_group, 1, std::slice::from_ref(&own)),
            None
        );
        let way = SOURCE.reply_address_from(&to_group, 1, &own).unwrap();
        assert_eq!(way.grh.destination_gid, gid("::ffff:10.71.1.1").0);
        assert_eq!(way.grh.source_gid_index, 4);
        assert_eq!(SOURCE.reply_address_from(&[], 1, &own), None);
    }

    #[test]
    fn there_is_no_way_back_from_elsewhere() {
        let gids = [
            entry(0, "fd71:1::9", None),
            entry(1, "fd71:1::2", Some("IB/RoCE v1")),
        ];
        assert_eq!(SOURCE.reply_address(&v6(), 1, &gids), None);
        assert_eq!(SOURCE.reply_address(&[], 1, &gids), None);
        // Its header is a global route's own.
        let mut older = v6();
        older[6] = 0x1b;
        let way = SOURCE.reply_address(&older, 1, &gids).unwrap();
        assert_eq!(way.grh.source_gid_index, 1);
    }

    #[test]
    fn without_a_route_the_way_back_is_local() {
        let local = DatagramSource {
            has_grh: false,
            ..SOURCE
        };
        let way = local.reply_address(&[], 2, &[]).unwrap();
        assert_eq!((way.is_global, way.port_number), (0, 2));
        assert_eq!(way.destination_lid, 5);
    }
}
