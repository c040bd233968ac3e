//! The answers of QUERY and `QUERY_ROUTE`.

use zerocopy::byteorder::native_endian;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{
    Be16, Be64, IpSlot, PathRecordData, Reserved, ServiceRecord, SockaddrStorage, UserPathRecord,
};

/// `struct rdma_ucm_query_addr_resp`: addresses, or GIDs, and the device.
#[doc(alias = "rdma_ucm_query_addr_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryAddrResponse {
    /// The device's GUID; 0 if the id has no device. Not unique: devices on
    /// one network interface share it.
    pub node_guid: Be64,
    /// The port, from 1; 0 if the id has no device.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// Zero.
    pub reserved: Reserved<1>,
    /// The partition key.
    pub pkey: Be16,
    /// Bytes of the source; 0 if there is none.
    #[doc(alias = "src_size")]
    pub source_size: u16,
    /// Bytes of the destination; 0 if there is none.
    #[doc(alias = "dst_size")]
    pub destination_size: u16,
    /// The source.
    #[doc(alias = "src_addr")]
    pub source: SockaddrStorage,
    /// The destination.
    #[doc(alias = "dst_addr")]
    pub destination: SockaddrStorage,
    /// The device's index, as RDMA netlink counts; 0 if the id has no device.
    /// Kernels before 5.8 do not write this far.
    #[doc(alias = "ibdev_index")]
    pub device_index: u32,
    /// Zero.
    #[doc(alias = "reserved1")]
    pub reserved_end: Reserved<4>,
}

/// `struct rdma_ucm_query_route_resp`: IP addresses, the device and up to two
/// paths. Wrong for `AF_IB` ids, whose addresses do not fit.
#[doc(alias = "rdma_ucm_query_route_resp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct QueryRouteResponse {
    /// The device's GUID; 0 if the id has no device.
    pub node_guid: Be64,
    /// The paths, primary first.
    #[doc(alias = "ib_route")]
    pub paths: [UserPathRecord; 2],
    /// The source.
    #[doc(alias = "src_addr")]
    pub source: IpSlot,
    /// The destination.
    #[doc(alias = "dst_addr")]
    pub destination: IpSlot,
    /// How many of the paths there are, 0 to 2.
    #[doc(alias = "num_paths")]
    pub path_count: u32,
    /// The port, from 1; 0 if the id has no device.
    #[doc(alias = "port_num")]
    pub port_number: u8,
    /// Zero.
    pub reserved: Reserved<3>,
    /// The device's index, as RDMA netlink counts; 0 if the id has no device.
    /// Kernels before 5.8 do not write this far.
    #[doc(alias = "ibdev_index")]
    pub device_index: u32,
    /// Zero.
    #[doc(alias = "reserved1")]
    pub reserved_end: Reserved<4>,
}

/// `struct rdma_ucm_query_path_resp` with space for `N` path records.
///
/// Of alignment 1: a generic structure proves itself free of padding only if
/// its fields are.
#[doc(alias = "rdma_ucm_query_path_resp")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct QueryPathResponse<const N: usize> {
    /// How many paths there are; may be more than `N`. Host order.
    #[doc(alias = "num_paths")]
    pub path_count: native_endian::U32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// The records, zeros after them.
    #[doc(alias = "path_data")]
    pub paths: [PathRecordData; N],
}

impl<const N: usize> QueryPathResponse<N> {
    /// The records in the response.
    #[must_use]
    pub fn paths(&self) -> &[PathRecordData] {
        filled(&self.paths, self.path_count)
    }
}

/// `struct rdma_ucm_query_ib_service_resp` with space for `N` services. Needs
/// Linux 6.18 or newer.
#[doc(alias = "rdma_ucm_query_ib_service_resp")]
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct QueryIbServiceResponse<const N: usize> {
    /// How many services there are; may be more than `N`. Host order.
    #[doc(alias = "num_service_recs")]
    pub record_count: native_endian::U32,
    /// Zero.
    pub reserved: Reserved<4>,
    /// The records, zeros after them.
    #[doc(alias = "recs")]
    pub records: [ServiceRecord; N],
}

impl<const N: usize> QueryIbServiceResponse<N> {
    /// The records in the response.
    #[must_use]
    pub fn records(&self) -> &[ServiceRecord] {
        filled(&self.records, self.record_count)
    }
}

fn filled<T>(records: &[T], count: native_endian::U32) -> &[T] {
    let count = usize::try_from(count.get()).unwrap_or(usize::MAX);
    &records[..count.min(records.len())]
}
