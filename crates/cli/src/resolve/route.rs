//! Path records in words.

use std::fmt::Write as _;
use std::time::Duration;

use rdmacm::core::{PathData, PathFlags, PathRecord, Transport};

use super::listing::mtu;

/// The LIDs of a path, from and to, that the kernel has for a device of this transport;
/// `None` but on InfiniBand. RoCE has none: in their place the kernel's record has bytes
/// of the MAC address (`struct sa_path_rec_roce`).
pub(super) fn lids(path: &PathData, transport: Transport) -> Option<(u16, u16)> {
    let has_lids = matches!(transport, Transport::InfiniBand | Transport::OmniPath);
    has_lids.then_some((path.record.slid, path.record.dlid))
}

/// The LIDs of a path that ibacm gave, which knows InfiniBand alone.
pub(super) fn lids_of_acm(path: &PathData) -> Option<(u16, u16)> {
    let lids = (path.record.slid, path.record.dlid);
    (lids != (0, 0)).then_some(lids)
}

/// A path in one or two sentences.
pub(super) fn words(path: &PathData, lids: Option<(u16, u16)>) -> String {
    let record = &path.record;
    let mut text = format!("from {} to {}", record.sgid, record.dgid);
    if let Some((from, to)) = lids {
        let _ = write!(text, ", LID {from:#06x} to {to:#06x}");
    }
    let _ = write!(
        text,
        ", partition {:#06x}, service level {}, {} bytes a packet",
        record.pkey,
        record.sl,
        mtu(record.mtu)
    );
    if let Some(rate) = rate(record.rate) {
        let _ = write!(text, ", {rate} Gb/s");
    }
    let _ = write!(
        text,
        ", packets live {}, at most {} hops",
        life_time(record),
        record.hop_limit
    );
    if record.traffic_class != 0 {
        let _ = write!(text, ", traffic class {:#04x}", record.traffic_class);
    }
    if record.flow_label != 0 {
        let _ = write!(text, ", flow label {:#07x}", record.flow_label);
    }
    if !record.reversible {
        text.push_str(", not reversible");
    }
    let uses = uses(path.flags);
    if !uses.is_empty() {
        let _ = write!(text, "; {}", uses.join(", "));
    }
    text
}

/// What a path is for.
fn uses(flags: PathFlags) -> Vec<&'static str> {
    let both = PathFlags::OUTBOUND | PathFlags::INBOUND_REVERSE;
    let known = [
        (PathFlags::PRIMARY, "primary"),
        (PathFlags::ALTERNATE, "alternate"),
        (both, "both ways"),
        (PathFlags::GMP, "for management datagrams too"),
    ];
    let set = known.into_iter().filter(|(flag, _)| flags.contains(*flag));
    set.map(|(_, words)| words).collect()
}

/// 4.096 µs × 2^exponent, of which the record has six bits.
fn life_time(record: &PathRecord) -> String {
    const SECOND: u128 = 1_000_000_000;
    let nanoseconds = 4096_u128 << (record.packet_life_time & 0x3f);
    let seconds = u64::try_from(nanoseconds / SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanoseconds % SECOND).unwrap_or(0);
    format!("{:.3?}", Duration::new(seconds, rest))
}

/// In Gb/s. Source: IBTA Vol 1 §15.2.5.16, `enum ib_rate` of the kernel's
/// `include/rdma/ib_verbs.h`.
fn rate(encoding: u8) -> Option<&'static str> {
    Some(match encoding {
        2 => "2.5",
        3 => "10",
        4 => "30",
        5 => "5",
        6 => "20",
        7 => "40",
        8 => "60",
        9 => "80",
        10 => "120",
        11 => "14",
        12 => "56",
        13 => "112",
        14 => "168",
        15 => "25",
        16 => "100",
        17 => "200",
        18 => "300",
        19 => "28",
        20 => "50",
        21 => "400",
        22 => "600",
        23 => "800",
        24 => "1200",
        25 => "1600",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdmacm::core::{Gid, PathMtu};

    fn record() -> PathRecord {
        PathRecord {
            service_id: 0,
            dgid: "fe80::2".parse().unwrap_or(Gid::UNSPECIFIED),
            sgid: "fe80::1".parse().unwrap_or(Gid::UNSPECIFIED),
            dlid: 4,
            slid: 3,
            flow_label: 0,
            hop_limit: 0,
            traffic_class: 0,
            reversible: true,
            numb_path: 1,
            pkey: 0xffff,
            qos_class: 0,
            sl: 2,
            mtu_selector: 2,
            mtu: PathMtu::B4096,
            rate_selector: 2,
            rate: 16,
            packet_life_time_selector: 2,
            packet_life_time: 18,
            preference: 0,
        }
    }

    #[test]
    fn a_path_of_infiniband() {
        let path = PathData {
            flags: PathData::USABLE,
            record: record(),
        };
        assert_eq!(
            words(&path, lids(&path, Transport::InfiniBand)),
            "from fe80::1 to fe80::2, LID 0x0003 to 0x0004, partition 0xffff, service level 2, \
             4096 bytes a packet, 100 Gb/s, packets live 1.074s, at most 0 hops; primary, both \
             ways, for management datagrams too"
        );
    }

    #[test]
    fn lids_are_infinibands() {
        let path = PathData::from(record());
        assert_eq!(lids(&path, Transport::InfiniBand), Some((3, 4)));
        assert_eq!(lids(&path, Transport::RoCE), None);
        assert_eq!(lids_of_acm(&path), Some((3, 4)));
        let record = PathRecord {
            slid: 0,
            dlid: 0,
            ..record()
        };
        assert_eq!(lids_of_acm(&record.into()), None);
    }

    #[test]
    fn what_is_not_usual_is_said() {
        let record = PathRecord {
            rate: 0,
            packet_life_time: 63,
            traffic_class: 8,
            flow_label: 0x12,
            reversible: false,
            ..record()
        };
        let path = record.into();
        let text = words(&path, lids(&path, Transport::RoCE));
        assert_eq!(
            text,
            "from fe80::1 to fe80::2, partition 0xffff, service level 2, 4096 bytes a packet, \
             packets live 37778931862957.162s, at most 0 hops, traffic class 0x08, flow label \
             0x00012, not reversible"
        );
    }
}
