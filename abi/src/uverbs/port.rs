//! A port's attributes.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::Reserved;

/// `struct ib_uverbs_query_port`: queries a port's attributes.
#[doc(alias = "ib_uverbs_query_port")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryPort {
    /// Where the kernel puts [`QueryPortResponse`]; filled in when the command is written.
    pub response: u64,
    /// The port, from 1; EINVAL where there is no such port.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// Zero.
    pub reserved: Reserved<7>,
}

impl QueryPort {
    /// A query of the port `port_number`.
    #[must_use]
    pub const fn new(port_number: u8) -> Self {
        Self {
            response: 0,
            port_number,
            reserved: Reserved::ZERO,
        }
    }
}

/// `struct ib_uverbs_query_port_resp`.
#[doc(alias = "ib_uverbs_query_port_resp", alias = "ibv_port_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryPortResponse {
    /// What the port can do, `enum ib_uverbs_query_port_cap_flags`.
    pub port_cap_flags: u32,
    /// Bytes of the longest message.
    #[doc(alias = "max_msg_sz")]
    pub max_message_size: u32,
    /// Packets of another partition.
    #[doc(alias = "bad_pkey_cntr")]
    pub bad_pkey_counter: u32,
    /// Packets with a wrong queue key.
    #[doc(alias = "qkey_viol_cntr")]
    pub qkey_violation_counter: u32,
    /// Entries of the GID table.
    #[doc(alias = "gid_tbl_len")]
    pub gid_table_len: u32,
    /// Entries of the partition key table.
    #[doc(alias = "pkey_tbl_len")]
    pub pkey_table_len: u16,
    /// The port's LID.
    pub lid: u16,
    /// The subnet manager's LID.
    #[doc(alias = "sm_lid")]
    pub subnet_manager_lid: u16,
    /// The state of the logical link, `enum ib_port_state`.
    pub state: u8,
    /// The largest MTU, `enum ib_mtu`.
    pub max_mtu: u8,
    /// The MTU in use, `enum ib_mtu`.
    pub active_mtu: u8,
    /// How many low bits of the LID are free.
    pub lmc: u8,
    /// Virtual lanes, in IBTA's encoding.
    #[doc(alias = "max_vl_num")]
    pub max_virtual_lanes: u8,
    /// The service level of the subnet manager.
    #[doc(alias = "sm_sl")]
    pub subnet_manager_service_level: u8,
    /// The subnet's timeout: 4.096 µs times two to this power.
    pub subnet_timeout: u8,
    /// What the subnet manager did at the port's start.
    pub init_type_reply: u8,
    /// The link's width in use, a bit of `enum ib_port_width`.
    pub active_width: u8,
    /// The link's speed in use, a bit of `enum ib_port_speed`.
    pub active_speed: u8,
    /// The state of the physical link, `enum ib_port_phys_state`.
    #[doc(alias = "phys_state")]
    pub physical_state: u8,
    /// InfiniBand 1, Ethernet 2; siw returns 0.
    pub link_layer: u8,
    /// `enum ib_uverbs_query_port_flags`.
    pub flags: u8,
    /// Zero.
    pub reserved: Reserved<1>,
}
