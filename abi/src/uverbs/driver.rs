//! Drivers, and requests to a device of one.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

numbers! {
    /// `enum rdma_driver_id`: the driver of a device. Netlink reports it.
    #[doc(alias = "rdma_driver_id")]
    pub struct DriverId(u32) in kernel "rdma/ib_user_ioctl_verbs.h" {
        /// The kernel does not report it.
        UNKNOWN = 0 => "RDMA_DRIVER_UNKNOWN",
        /// `mlx5_ib`: Nvidia.
        MLX5 = 1 => "RDMA_DRIVER_MLX5",
        /// `mlx4_ib`: Nvidia, older ones.
        MLX4 = 2 => "RDMA_DRIVER_MLX4",
        /// `iw_cxgb3`: Chelsio T3.
        CXGB3 = 3 => "RDMA_DRIVER_CXGB3",
        /// `iw_cxgb4`: Chelsio T4 and later.
        CXGB4 = 4 => "RDMA_DRIVER_CXGB4",
        /// `ib_mthca`: Mellanox.
        MTHCA = 5 => "RDMA_DRIVER_MTHCA",
        /// `bnxt_re`: Broadcom.
        BNXT_RE = 6 => "RDMA_DRIVER_BNXT_RE",
        /// `ocrdma`: Emulex.
        OCRDMA = 7 => "RDMA_DRIVER_OCRDMA",
        /// `iw_nes`: Intel, of old.
        NES = 8 => "RDMA_DRIVER_NES",
        /// `i40iw` and its successor `irdma`: Intel.
        IRDMA = 9 => "RDMA_DRIVER_IRDMA",
        /// `vmw_pvrdma`: of virtual machines.
        VMW_PVRDMA = 10 => "RDMA_DRIVER_VMW_PVRDMA",
        /// `qedr`: Marvell.
        QEDR = 11 => "RDMA_DRIVER_QEDR",
        /// `hns_roce`: Huawei.
        HNS = 12 => "RDMA_DRIVER_HNS",
        /// `usnic_verbs`: Cisco.
        USNIC = 13 => "RDMA_DRIVER_USNIC",
        /// `rdma_rxe`: software, RoCE v2.
        RXE = 14 => "RDMA_DRIVER_RXE",
        /// `hfi1`: Omni-Path.
        HFI1 = 15 => "RDMA_DRIVER_HFI1",
        /// `ib_qib`: Intel, InfiniBand.
        QIB = 16 => "RDMA_DRIVER_QIB",
        /// `efa`: Amazon.
        EFA = 17 => "RDMA_DRIVER_EFA",
        /// `siw`: software, iWARP.
        SIW = 18 => "RDMA_DRIVER_SIW",
        /// `erdma`: Alibaba.
        ERDMA = 19 => "RDMA_DRIVER_ERDMA",
        /// `mana_ib`: Microsoft; not in Linux 6.1.
        MANA = 20 => "RDMA_DRIVER_MANA" since (7, 2),
        /// `ionic_rdma`: AMD; not in Linux 6.1.
        IONIC = 21 => "RDMA_DRIVER_IONIC" since (7, 2),
    }
}

/// A request to a device of rxe, whose driver answers words of its own after
/// the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(transparent)]
pub struct Rxe<R>(pub R);

/// A request to a device of siw, whose driver answers words of its own after
/// the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(transparent)]
pub struct Siw<R>(pub R);
