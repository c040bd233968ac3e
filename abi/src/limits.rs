//! Fixed numbers of the interface.

/// The interface's version, in `/sys/class/misc/rdma_cm/abi_version`.
#[doc(alias = "RDMA_USER_CM_ABI_VERSION")]
pub const ABI_VERSION: u32 = 4;

/// Bytes of a private data buffer. Its length field is a `u8`, so 255 of them
/// can be said to be used, and every transport carries fewer.
#[doc(alias = "RDMA_MAX_PRIVATE_DATA")]
pub const MAX_PRIVATE_DATA: usize = 256;

/// Bytes of a service name, its closing zero included (Linux 7.2).
#[doc(alias = "RDMA_USER_CM_IB_SERVICE_NAME_SIZE")]
pub const IB_SERVICE_NAME_SIZE: usize = 64;

/// The queue key of port spaces UDP and IB, unless one is agreed on.
/// Source: `include/rdma/rdma_cm_ib.h`.
#[doc(alias = "RDMA_UDP_QKEY")]
pub const UDP_QKEY: u32 = 0x0123_4567;

/// "As many as the device takes", as responder resources. A convention of
/// librdmacm; the kernel sees an ordinary 255.
#[doc(alias = "RDMA_MAX_RESP_RES")]
pub const MAX_RESPONDER_RESOURCES: u8 = 0xFF;

/// "As many as the device takes", as initiator depth. A convention of
/// librdmacm; the kernel sees an ordinary 255.
#[doc(alias = "RDMA_MAX_INIT_DEPTH")]
pub const MAX_INITIATOR_DEPTH: u8 = 0xFF;

/// The bits of an `AF_IB` service id that hold the port space, shifted left
/// by 16. Host order. Source: `include/rdma/rdma_cm.h`.
#[doc(alias = "RDMA_IB_IP_PS_MASK")]
pub const IB_IP_PS_MASK: u64 = 0xFFFF_FFFF_FFFF_0000;

/// The bits of an `AF_IB` service id that hold the port. Host order.
#[doc(alias = "RDMA_IB_IP_PORT_MASK")]
pub const IB_IP_PORT_MASK: u64 = 0x0000_0000_0000_FFFF;

/// The service id prefix of port space TCP. Host order.
#[doc(alias = "RDMA_IB_IP_PS_TCP")]
pub const IB_IP_PS_TCP: u64 = 0x0000_0000_0106_0000;

/// The service id prefix of port space UDP. Host order.
#[doc(alias = "RDMA_IB_IP_PS_UDP")]
pub const IB_IP_PS_UDP: u64 = 0x0000_0000_0111_0000;

/// The service id prefix of port space IB. Host order.
#[doc(alias = "RDMA_IB_PS_IB", alias = "RDMA_IB_IP_PS_IB")]
pub const IB_IP_PS_IB: u64 = 0x0000_0000_013F_0000;
