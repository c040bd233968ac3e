//! Path records, in the kernel's two forms.

use zerocopy::byteorder::{big_endian, native_endian};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{Be16, Be32, Reserved};

bits! {
    /// What a path of [`PathRecordData`] is for.
    pub struct PathFlags(u32) in kernel "rdma/ib_user_sa.h" {
        /// May be used for management packets.
        GMP = 0x1 => "IB_PATH_GMP",
        /// The primary path.
        PRIMARY = 0x2 => "IB_PATH_PRIMARY",
        /// The alternate path.
        ALTERNATE = 0x4 => "IB_PATH_ALTERNATE",
        /// From here to the peer.
        OUTBOUND = 0x8 => "IB_PATH_OUTBOUND",
        /// From the peer to here.
        INBOUND = 0x10 => "IB_PATH_INBOUND",
        /// From the peer to here, described as if the other way.
        INBOUND_REVERSE = 0x20 => "IB_PATH_INBOUND_REVERSE",
        /// In both directions: [`OUTBOUND`](Self::OUTBOUND) and
        /// [`INBOUND_REVERSE`](Self::INBOUND_REVERSE).
        BIDIRECTIONAL = 0x28 => "IB_PATH_BIDIRECTIONAL",
    }
}

/// `struct ib_path_rec_data`: a path record in wire format and what it is
/// for; what QUERY PATH answers and what the option IB PATH takes.
///
/// Of alignment 1 here and 4 in C, as these stand only in arrays of their
/// own.
#[doc(alias = "ib_path_rec_data", alias = "ibv_path_data")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct PathRecordData {
    /// What the path is for: [`PathFlags`], host order.
    pub flags: native_endian::U32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// The path.
    #[doc(alias = "path_rec")]
    pub record: PathRecord,
}

impl PathRecordData {
    /// The flags without which the option IB PATH refuses a record, and which
    /// QUERY PATH always reports.
    pub const USABLE: PathFlags = PathFlags::GMP
        .union(PathFlags::PRIMARY)
        .union(PathFlags::BIDIRECTIONAL);

    /// A record and what it is for.
    #[must_use]
    pub const fn new(flags: PathFlags, record: PathRecord) -> Self {
        Self {
            flags: native_endian::U32::new(flags.bits()),
            reserved: Reserved::ZERO,
            record,
        }
    }

    /// What the path is for.
    #[must_use]
    pub const fn flags(&self) -> PathFlags {
        PathFlags::from_bits_retain(self.flags.get())
    }
}

/// A path record as it travels: 64 bytes, all big-endian (IBTA Vol 1
/// §15.2.5.16).
#[doc(alias = "ibv_path_record")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct PathRecord {
    /// The service id the path is for.
    pub service_id: big_endian::U64,
    /// The destination GID.
    #[doc(alias = "dgid")]
    pub destination_gid: [u8; 16],
    /// The source GID.
    #[doc(alias = "sgid")]
    pub source_gid: [u8; 16],
    /// The destination LID; on RoCE bytes of a MAC address, which mean nothing.
    #[doc(alias = "dlid")]
    pub destination_lid: big_endian::U16,
    /// The source LID; on RoCE bytes of a MAC address, which mean nothing.
    #[doc(alias = "slid")]
    pub source_lid: big_endian::U16,
    /// Flow label in bits 27 to 8, hop limit in bits 7 to 0, raw traffic in
    /// bit 31.
    #[doc(alias = "flowlabel_hoplimit")]
    pub flow_label_hop_limit: big_endian::U32,
    /// The traffic class.
    #[doc(alias = "tclass")]
    pub traffic_class: u8,
    /// Reversible in bit 7, number of paths in the rest.
    #[doc(alias = "reversible_numpath")]
    pub reversible_path_count: u8,
    /// The partition key.
    pub pkey: big_endian::U16,
    /// Class of service in the upper 12 bits, service level in the lower 4.
    #[doc(alias = "qosclass_sl")]
    pub qos_class_service_level: big_endian::U16,
    /// Selector in bits 7 and 6; MTU, as in [`PathMtu`](crate::PathMtu), in
    /// the rest.
    #[doc(alias = "mtu")]
    pub mtu_selector_mtu: u8,
    /// Selector in bits 7 and 6; rate, in IBTA's encoding, in the rest.
    #[doc(alias = "rate")]
    pub rate_selector_rate: u8,
    /// Selector in bits 7 and 6; life time in the rest: 4.096 µs times two
    /// to this power.
    #[doc(alias = "packetlifetime")]
    pub life_selector_packet_life_time: u8,
    /// Among several paths, the smallest is best.
    pub preference: u8,
    /// Zero.
    pub reserved: Reserved<6>,
}

impl PathRecord {
    /// The flow label, 20 bits.
    #[must_use]
    pub const fn flow_label(&self) -> u32 {
        (self.flow_label_hop_limit.get() >> 8) & 0xF_FFFF
    }

    /// The hop limit.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        let [.., hop_limit] = self.flow_label_hop_limit.to_bytes();
        hop_limit
    }

    /// Whether the path leads back too.
    #[must_use]
    pub const fn is_reversible(&self) -> bool {
        self.reversible_path_count & 0x80 != 0
    }

    /// The number of paths, 7 bits.
    #[must_use]
    pub const fn path_count(&self) -> u8 {
        self.reversible_path_count & 0x7F
    }

    /// The class of service, 12 bits.
    #[must_use]
    pub const fn qos_class(&self) -> u16 {
        self.qos_class_service_level.get() >> 4
    }

    /// The service level, 0 to 15.
    #[must_use]
    pub const fn service_level(&self) -> u8 {
        let [.., low] = self.qos_class_service_level.to_bytes();
        low & 0xF
    }

    /// The MTU, as in [`PathMtu`](crate::PathMtu).
    #[must_use]
    pub const fn mtu(&self) -> u8 {
        self.mtu_selector_mtu & 0x3F
    }

    /// The rate, in IBTA's encoding.
    #[must_use]
    pub const fn rate(&self) -> u8 {
        self.rate_selector_rate & 0x3F
    }

    /// The packet life time: 4.096 µs times two to this power.
    #[must_use]
    pub const fn packet_life_time(&self) -> u8 {
        self.life_selector_packet_life_time & 0x3F
    }
}

/// `struct ib_user_path_rec`: a path record taken apart, as `QUERY_ROUTE`
/// answers.
#[doc(alias = "ib_user_path_rec", alias = "ibv_sa_path_rec")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct UserPathRecord {
    /// The destination GID.
    #[doc(alias = "dgid")]
    pub destination_gid: [u8; 16],
    /// The source GID.
    #[doc(alias = "sgid")]
    pub source_gid: [u8; 16],
    /// The destination LID.
    #[doc(alias = "dlid")]
    pub destination_lid: Be16,
    /// The source LID.
    #[doc(alias = "slid")]
    pub source_lid: Be16,
    /// Whether raw packets are allowed: 0 or 1.
    pub raw_traffic: u32,
    /// The flow label, 20 bits.
    pub flow_label: Be32,
    /// Whether the path leads back too: 0 or 1.
    pub reversible: u32,
    /// The MTU, as in [`PathMtu`](crate::PathMtu).
    pub mtu: u32,
    /// The partition key.
    pub pkey: Be16,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// The number of paths.
    #[doc(alias = "numb_path")]
    pub path_count: u8,
    /// The service level, 0 to 15.
    #[doc(alias = "sl")]
    pub service_level: u8,
    /// How `mtu` is meant: 0 greater, 1 less, 2 exactly, 3 the largest.
    pub mtu_selector: u8,
    /// How `rate` is meant.
    pub rate_selector: u8,
    /// The rate, in IBTA's encoding.
    pub rate: u8,
    /// How `packet_life_time` is meant.
    pub packet_life_time_selector: u8,
    /// The packet life time: 4.096 µs times two to this power.
    pub packet_life_time: u8,
    /// Among several paths, the smallest is best.
    pub preference: u8,
}
