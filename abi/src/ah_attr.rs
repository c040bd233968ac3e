//! How packets find a peer: the attributes of an address handle.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct ib_uverbs_global_route`: the global route header's fields.
#[doc(alias = "ib_uverbs_global_route", alias = "ibv_global_route")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct GlobalRoute {
    /// The destination GID.
    #[doc(alias = "dgid")]
    pub destination_gid: [u8; 16],
    /// The flow label, 20 bits, host order.
    pub flow_label: u32,
    /// Index of the source GID in the port's table.
    #[doc(alias = "sgid_index")]
    pub source_gid_index: u8,
    /// The hop limit.
    pub hop_limit: u8,
    /// The traffic class.
    pub traffic_class: u8,
    /// Zero.
    pub reserved: Reserved<1>,
}

/// `struct ib_uverbs_ah_attr`: the attributes of an address handle.
#[doc(alias = "ib_uverbs_ah_attr", alias = "ibv_ah_attr")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct AhAttr {
    /// The global route, if `is_global`.
    pub grh: GlobalRoute,
    /// The destination LID, host order; 0 on RoCE.
    #[doc(alias = "dlid")]
    pub destination_lid: u16,
    /// The service level, 0 to 15.
    #[doc(alias = "sl")]
    pub service_level: u8,
    /// The low bits of the source LID.
    #[doc(alias = "src_path_bits")]
    pub source_path_bits: u8,
    /// The highest rate, in the encoding of IBTA Vol 1; 0 is the port's own.
    pub static_rate: u8,
    /// Whether `grh` counts: 0 or 1.
    pub is_global: u8,
    /// The local port, from 1.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// Zero.
    pub reserved: Reserved<1>,
}
