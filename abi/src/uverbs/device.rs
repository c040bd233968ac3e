//! A device's limits.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{Be64, Reserved};

/// `struct ib_uverbs_query_device`: queries the device's limits.
#[doc(alias = "ib_uverbs_query_device")]
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable,
)]
#[repr(C)]
pub struct QueryDevice {
    /// Where the kernel puts [`QueryDeviceResponse`]; filled in when the command is written.
    pub response: u64,
}

/// `struct ib_uverbs_query_device_resp`.
#[doc(alias = "ib_uverbs_query_device_resp", alias = "ibv_device_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryDeviceResponse {
    /// The firmware's version.
    #[doc(alias = "fw_ver")]
    pub firmware_version: u64,
    /// The node's GUID.
    pub node_guid: Be64,
    /// The GUID of the system the node is part of.
    #[doc(alias = "sys_image_guid")]
    pub system_image_guid: Be64,
    /// Bytes of the largest memory region.
    pub max_mr_size: u64,
    /// The page sizes, a bit each.
    pub page_size_cap: u64,
    /// The vendor, an IEEE OUI.
    pub vendor_id: u32,
    /// The vendor's part number.
    pub vendor_part_id: u32,
    /// The hardware's version.
    #[doc(alias = "hw_ver")]
    pub hardware_version: u32,
    /// Queue pairs.
    pub max_qp: u32,
    /// Requests a queue holds.
    pub max_qp_wr: u32,
    /// What the device can do, `enum ib_uverbs_device_cap_flags`.
    pub device_cap_flags: u32,
    /// Pieces of memory a request names.
    pub max_sge: u32,
    /// Pieces of memory a read request names.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Completions a queue holds.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Reads and atomics that one queue pair answers at a time.
    pub max_qp_rd_atom: u32,
    /// The same of an end-to-end context.
    pub max_ee_rd_atom: u32,
    /// Reads and atomics that the device answers at a time.
    pub max_res_rd_atom: u32,
    /// Reads and atomics that one queue pair has outstanding as initiator.
    pub max_qp_init_rd_atom: u32,
    /// The same of an end-to-end context.
    pub max_ee_init_rd_atom: u32,
    /// How atomic its atomics are, `enum ib_atomic_cap`.
    pub atomic_cap: u32,
    /// End-to-end contexts.
    pub max_ee: u32,
    /// Reliable datagram domains.
    pub max_rdd: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Raw IPv6 queue pairs.
    pub max_raw_ipv6_qp: u32,
    /// Raw Ethernet queue pairs.
    #[doc(alias = "max_raw_ethy_qp")]
    pub max_raw_ethernet_qp: u32,
    /// Multicast groups.
    #[doc(alias = "max_mcast_grp")]
    pub max_multicast_groups: u32,
    /// Queue pairs in one multicast group.
    #[doc(alias = "max_mcast_qp_attach")]
    pub max_multicast_qp_attach: u32,
    /// Queue pairs in all multicast groups.
    #[doc(alias = "max_total_mcast_qp_attach")]
    pub max_total_multicast_qp_attach: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Fast memory regions, which no kernel has any more.
    pub max_fmr: u32,
    /// Mappings of a fast memory region.
    pub max_map_per_fmr: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Requests a shared receive queue holds.
    pub max_srq_wr: u32,
    /// Pieces of memory a request of a shared receive queue names.
    pub max_srq_sge: u32,
    /// Partitions.
    pub max_pkeys: u16,
    /// How long the device takes to acknowledge: 4.096 µs times two to this
    /// power.
    #[doc(alias = "local_ca_ack_delay")]
    pub ack_delay: u8,
    /// Ports.
    #[doc(alias = "phys_port_cnt")]
    pub port_count: u8,
    /// Zero.
    pub reserved: Reserved<4>,
}
