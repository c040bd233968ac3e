//! Multicast groups.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::{IpSlot, Reserved, SockaddrStorage};

numbers! {
    /// How to join a group.
    #[doc(alias = "rdma_cm_join_mc_attr_ex")]
    pub struct JoinFlags(u16) in kernel "rdma/rdma_user_cm.h" {
        /// To send and to receive.
        FULL_MEMBER = 0 => "RDMA_MC_JOIN_FLAG_FULLMEMBER",
        /// To send only.
        SEND_ONLY_FULL_MEMBER = 1 => "RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER",
    }
}

/// `struct rdma_ucm_join_ip_mcast`: joins an IP multicast group as a full
/// member, as the first kernels could. Event `MULTICAST_JOIN` or
/// `MULTICAST_ERROR` follows.
#[doc(alias = "rdma_ucm_join_ip_mcast")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct JoinIpMulticast {
    /// Where the kernel puts [`CreateIdResponse`](crate::CreateIdResponse);
    /// filled in when the command is written.
    pub response: u64,
    /// What the events of the multicast object carry back.
    pub uid: u64,
    /// The group.
    pub addr: IpSlot,
    /// The id.
    pub id: u32,
}

impl JoinIpMulticast {
    /// A request to join `addr` with `id`.
    #[must_use]
    pub const fn new(uid: u64, id: u32, addr: IpSlot) -> Self {
        Self {
            response: 0,
            uid,
            addr,
            id,
        }
    }
}

/// `struct rdma_ucm_join_mcast`: joins a multicast group of any family. Event
/// `MULTICAST_JOIN` or `MULTICAST_ERROR` follows, perhaps before the answer.
#[doc(alias = "rdma_ucm_join_mcast")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct JoinMulticast {
    /// Where the kernel puts [`CreateIdResponse`](crate::CreateIdResponse);
    /// filled in when the command is written.
    pub response: u64,
    /// What the events of the multicast object carry back.
    pub uid: u64,
    /// The id.
    pub id: u32,
    /// Bytes of the address, exactly those of its family.
    pub addr_size: u16,
    /// How to join.
    pub join_flags: JoinFlags,
    /// The group.
    pub addr: SockaddrStorage,
}

impl JoinMulticast {
    /// A request to join `addr` with `id`.
    #[must_use]
    pub const fn new(uid: u64, id: u32, addr: SockaddrStorage, join_flags: JoinFlags) -> Self {
        Self {
            response: 0,
            uid,
            id,
            addr_size: addr.size(),
            join_flags,
            addr,
        }
    }
}

/// `struct rdma_ucm_destroy_id`, as `LEAVE_MCAST` takes it: leaves a group.
///
/// Answered with [`DestroyIdResponse`](crate::DestroyIdResponse).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct LeaveMulticast {
    /// Where the kernel puts the answer; filled in when the command is written.
    pub response: u64,
    /// The multicast id that the join answered.
    pub id: u32,
    /// Zero.
    pub reserved: Reserved<4>,
}

impl LeaveMulticast {
    /// A request to leave the group of the multicast id `id`.
    #[must_use]
    pub const fn new(id: u32) -> Self {
        Self {
            response: 0,
            id,
            reserved: Reserved::ZERO,
        }
    }
}
