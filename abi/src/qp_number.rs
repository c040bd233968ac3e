//! The numbers and bits of queue pairs, devices and paths.

numbers! {
    /// `enum ib_uverbs_qp_type`: the transport service of a queue pair.
    #[doc(alias = "ibv_qp_type")]
    #[doc(alias = "ib_uverbs_qp_type")]
    pub struct QpType(u8) in kernel "rdma/ib_user_ioctl_verbs.h" {
        /// Reliable connection.
        #[doc(alias = "IBV_QPT_RC")]
        RC = 2 => "IB_UVERBS_QPT_RC",
        /// Unreliable connection.
        #[doc(alias = "IBV_QPT_UC")]
        UC = 3 => "IB_UVERBS_QPT_UC",
        /// Unreliable datagram.
        #[doc(alias = "IBV_QPT_UD")]
        UD = 4 => "IB_UVERBS_QPT_UD",
        /// Extended reliable connection, the sender's end.
        #[doc(alias = "IBV_QPT_XRC_SEND")]
        XRC_INI = 9 => "IB_UVERBS_QPT_XRC_INI",
        /// Extended reliable connection, the receiver's end.
        #[doc(alias = "IBV_QPT_XRC_RECV")]
        XRC_TGT = 10 => "IB_UVERBS_QPT_XRC_TGT",
    }

    /// The state of a queue pair.
    #[doc(alias = "ibv_qp_state")]
    pub struct QpState(u32) in user_space "infiniband/verbs.h" {
        /// New.
        RESET = 0 => "IBV_QPS_RESET",
        /// May post receives.
        INIT = 1 => "IBV_QPS_INIT",
        /// Ready to receive.
        RTR = 2 => "IBV_QPS_RTR",
        /// Ready to send.
        RTS = 3 => "IBV_QPS_RTS",
        /// Send queue drained.
        SQD = 4 => "IBV_QPS_SQD",
        /// Send queue error.
        SQE = 5 => "IBV_QPS_SQE",
        /// Error: everything posted is flushed.
        ERR = 6 => "IBV_QPS_ERR",
    }

    /// `enum ib_mtu`: the largest payload of a packet, as InfiniBand
    /// counts.
    #[doc(alias = "ibv_mtu")]
    #[doc(alias = "ib_mtu")]
    pub struct PathMtu(u32) in user_space "infiniband/verbs.h" {
        /// 256 bytes.
        B256 = 1 => "IBV_MTU_256",
        /// 512 bytes.
        B512 = 2 => "IBV_MTU_512",
        /// 1024 bytes.
        B1024 = 3 => "IBV_MTU_1024",
        /// 2048 bytes.
        B2048 = 4 => "IBV_MTU_2048",
        /// 4096 bytes.
        B4096 = 5 => "IBV_MTU_4096",
    }

    /// `enum rdma_node_type`: what kind of device it is, as sysfs and
    /// netlink say.
    #[doc(alias = "ibv_node_type")]
    #[doc(alias = "rdma_node_type")]
    pub struct NodeType(u8) in user_space "infiniband/verbs.h" {
        /// A channel adapter: InfiniBand or RoCE.
        CA = 1 => "IBV_NODE_CA",
        /// A switch.
        SWITCH = 2 => "IBV_NODE_SWITCH",
        /// A router.
        ROUTER = 3 => "IBV_NODE_ROUTER",
        /// An iWARP adapter.
        RNIC = 4 => "IBV_NODE_RNIC",
    }
}

impl PathMtu {
    /// The bytes; `None` for a number that is none of these.
    #[must_use]
    pub const fn bytes(self) -> Option<u32> {
        match self {
            Self::B256 | Self::B512 | Self::B1024 | Self::B2048 | Self::B4096 => {
                Some(128 << self.number())
            }
            _ => None,
        }
    }
}

bits! {
    /// `enum ib_qp_attr_mask`: which fields of [`QpAttr`](crate::QpAttr) to
    /// pass on when a queue pair is modified.
    #[doc(alias = "ibv_qp_attr_mask")]
    #[doc(alias = "ib_qp_attr_mask")]
    pub struct QpAttrMask(u32) in user_space "infiniband/verbs.h" {
        /// The state.
        STATE = 0x1 => "IBV_QP_STATE",
        /// The state it is believed to be in.
        CUR_STATE = 0x2 => "IBV_QP_CUR_STATE",
        /// Whether draining raises an event.
        EN_SQD_ASYNC_NOTIFY = 0x4 => "IBV_QP_EN_SQD_ASYNC_NOTIFY",
        /// What the peer may do.
        ACCESS_FLAGS = 0x8 => "IBV_QP_ACCESS_FLAGS",
        /// The index of the partition key.
        PKEY_INDEX = 0x10 => "IBV_QP_PKEY_INDEX",
        /// The port.
        PORT = 0x20 => "IBV_QP_PORT",
        /// The queue key.
        QKEY = 0x40 => "IBV_QP_QKEY",
        /// The address vector.
        AV = 0x80 => "IBV_QP_AV",
        /// The path's MTU.
        PATH_MTU = 0x100 => "IBV_QP_PATH_MTU",
        /// The ACK timeout.
        TIMEOUT = 0x200 => "IBV_QP_TIMEOUT",
        /// Retries of a lost packet.
        RETRY_CNT = 0x400 => "IBV_QP_RETRY_CNT",
        /// Retries when the receiver is not ready.
        RNR_RETRY = 0x800 => "IBV_QP_RNR_RETRY",
        /// The first packet number to receive.
        RQ_PSN = 0x1000 => "IBV_QP_RQ_PSN",
        /// Reads and atomics outstanding.
        MAX_QP_RD_ATOMIC = 0x2000 => "IBV_QP_MAX_QP_RD_ATOMIC",
        /// The alternate path.
        ALT_PATH = 0x4000 => "IBV_QP_ALT_PATH",
        /// The pause requested of a sender when no receive is posted.
        MIN_RNR_TIMER = 0x8000 => "IBV_QP_MIN_RNR_TIMER",
        /// The first packet number to send.
        SQ_PSN = 0x1_0000 => "IBV_QP_SQ_PSN",
        /// Reads and atomics answered.
        MAX_DEST_RD_ATOMIC = 0x2_0000 => "IBV_QP_MAX_DEST_RD_ATOMIC",
        /// The state of path migration.
        PATH_MIG_STATE = 0x4_0000 => "IBV_QP_PATH_MIG_STATE",
        /// The sizes of the queues.
        CAP = 0x8_0000 => "IBV_QP_CAP",
        /// The peer's queue pair number.
        DEST_QPN = 0x10_0000 => "IBV_QP_DEST_QPN",
        /// The rate limit.
        RATE_LIMIT = 0x200_0000 => "IBV_QP_RATE_LIMIT",
    }

    /// `enum ib_uverbs_access_flags`: what a peer may do.
    #[doc(alias = "ibv_access_flags")]
    #[doc(alias = "ib_uverbs_access_flags")]
    pub struct AccessFlags(u32) in kernel "rdma/ib_user_ioctl_verbs.h" {
        /// The device may write local memory.
        #[doc(alias = "IBV_ACCESS_LOCAL_WRITE")]
        LOCAL_WRITE = 0x1 => "IB_UVERBS_ACCESS_LOCAL_WRITE",
        /// The peer may write.
        #[doc(alias = "IBV_ACCESS_REMOTE_WRITE")]
        REMOTE_WRITE = 0x2 => "IB_UVERBS_ACCESS_REMOTE_WRITE",
        /// The peer may read.
        #[doc(alias = "IBV_ACCESS_REMOTE_READ")]
        REMOTE_READ = 0x4 => "IB_UVERBS_ACCESS_REMOTE_READ",
        /// The peer may use atomic operations.
        #[doc(alias = "IBV_ACCESS_REMOTE_ATOMIC")]
        REMOTE_ATOMIC = 0x8 => "IB_UVERBS_ACCESS_REMOTE_ATOMIC",
        /// Memory windows may be bound.
        #[doc(alias = "IBV_ACCESS_MW_BIND")]
        MW_BIND = 0x10 => "IB_UVERBS_ACCESS_MW_BIND",
        /// Addresses count from the region's start.
        #[doc(alias = "IBV_ACCESS_ZERO_BASED")]
        ZERO_BASED = 0x20 => "IB_UVERBS_ACCESS_ZERO_BASED",
        /// Pages are brought in when touched.
        #[doc(alias = "IBV_ACCESS_ON_DEMAND")]
        ON_DEMAND = 0x40 => "IB_UVERBS_ACCESS_ON_DEMAND",
        /// The memory is of huge pages.
        #[doc(alias = "IBV_ACCESS_HUGETLB")]
        HUGETLB = 0x80 => "IB_UVERBS_ACCESS_HUGETLB",
        /// The peer may flush to global visibility; not in Linux 6.1.
        #[doc(alias = "IBV_ACCESS_FLUSH_GLOBAL")]
        FLUSH_GLOBAL = 0x100 => "IB_UVERBS_ACCESS_FLUSH_GLOBAL" since (7, 2),
        /// The peer may flush to persistence; not in Linux 6.1.
        #[doc(alias = "IBV_ACCESS_FLUSH_PERSISTENT")]
        FLUSH_PERSISTENT = 0x200 => "IB_UVERBS_ACCESS_FLUSH_PERSISTENT" since (7, 2),
        /// Packets may be placed out of order.
        #[doc(alias = "IBV_ACCESS_RELAXED_ORDERING")]
        RELAXED_ORDERING = 0x10_0000 => "IB_UVERBS_ACCESS_RELAXED_ORDERING",
    }
}
