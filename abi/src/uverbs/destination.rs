//! How a queue pair's packets find its peer.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{AhAttr, GlobalRoute, Reserved};

/// `struct ib_uverbs_qp_dest`: an [`AhAttr`] in another order.
#[doc(alias = "ib_uverbs_qp_dest")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct QpDestination {
    /// The destination GID.
    #[doc(alias = "dgid")]
    pub destination_gid: [u8; 16],
    /// The flow label, 20 bits, host order.
    pub flow_label: u32,
    /// The destination LID, host order; 0 on RoCE.
    #[doc(alias = "dlid")]
    pub destination_lid: u16,
    /// Zero.
    pub reserved: Reserved<2>,
    /// Index of the source GID in the port's table.
    #[doc(alias = "sgid_index")]
    pub source_gid_index: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// The service level, 0 to 15.
    #[doc(alias = "sl")]
    pub service_level: u8,
    /// The low bits of the source LID.
    #[doc(alias = "src_path_bits")]
    pub source_path_bits: u8,
    /// The highest rate, in the encoding of IBTA Vol 1; 0 is the port's own.
    pub static_rate: u8,
    /// Whether GID, flow label, hop limit and traffic class count: 0 or 1.
    pub is_global: u8,
    /// The local port, from 1.
    #[doc(alias = "port_num")]
    pub port_number: u8,
}

impl From<AhAttr> for QpDestination {
    fn from(attr: AhAttr) -> Self {
        Self {
            destination_gid: attr.grh.destination_gid,
            flow_label: attr.grh.flow_label,
            destination_lid: attr.destination_lid,
            reserved: Reserved::ZERO,
            source_gid_index: attr.grh.source_gid_index,
            hop_limit: attr.grh.hop_limit,
            traffic_class: attr.grh.traffic_class,
            service_level: attr.service_level,
            source_path_bits: attr.source_path_bits,
            static_rate: attr.static_rate,
            is_global: attr.is_global,
            port_number: attr.port_number,
        }
    }
}

impl From<QpDestination> for AhAttr {
    fn from(destination: QpDestination) -> Self {
        Self {
            grh: GlobalRoute {
                destination_gid: destination.destination_gid,
                flow_label: destination.flow_label,
                source_gid_index: destination.source_gid_index,
                hop_limit: destination.hop_limit,
                traffic_class: destination.traffic_class,
                reserved: Reserved::ZERO,
            },
            destination_lid: destination.destination_lid,
            service_level: destination.service_level,
            source_path_bits: destination.source_path_bits,
            static_rate: destination.static_rate,
            is_global: destination.is_global,
            port_number: destination.port_number,
            reserved: Reserved::ZERO,
        }
    }
}
