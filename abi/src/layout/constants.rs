//! The constants that C headers declare.

use super::Constant;
use crate::uverbs::{
    self, AsyncEventKind, DriverId, ReregFlags, SendFlags, SrqAttrMask, WcOpcode, WcStatus,
    WrOpcode, siw,
};
use crate::{
    ABI_VERSION, AccessFlags, AddressFamily, CommandNumber, EventNumber, IB_IP_PORT_MASK,
    IB_IP_PS_IB, IB_IP_PS_MASK, IB_IP_PS_TCP, IB_IP_PS_UDP, IB_SERVICE_NAME_SIZE, IbOption,
    IdOption, JoinFlags, MAX_INITIATOR_DEPTH, MAX_PRIVATE_DATA, MAX_RESPONDER_RESOURCES, NodeType,
    OptionLevel, PathFlags, PathMtu, PortSpace, QpAttrMask, QpState, QpType, QueryOption,
    ServiceFlags, UDP_QKEY,
};

/// All of them, by type.
pub(super) const ALL: &[&[Constant]] = &[
    CommandNumber::CONSTANTS,
    PortSpace::CONSTANTS,
    QpType::CONSTANTS,
    QueryOption::CONSTANTS,
    OptionLevel::CONSTANTS,
    IdOption::CONSTANTS,
    IbOption::CONSTANTS,
    JoinFlags::CONSTANTS,
    PathFlags::CONSTANTS,
    ServiceFlags::CONSTANTS,
    AccessFlags::CONSTANTS,
    EventNumber::CONSTANTS,
    QpState::CONSTANTS,
    QpAttrMask::CONSTANTS,
    PathMtu::CONSTANTS,
    NodeType::CONSTANTS,
    AddressFamily::CONSTANTS,
    uverbs::CommandNumber::CONSTANTS,
    DriverId::CONSTANTS,
    ReregFlags::CONSTANTS,
    SrqAttrMask::CONSTANTS,
    AsyncEventKind::CONSTANTS,
    WrOpcode::CONSTANTS,
    SendFlags::CONSTANTS,
    WcStatus::CONSTANTS,
    WcOpcode::CONSTANTS,
    siw::Opcode::CONSTANTS,
    siw::WqeFlags::CONSTANTS,
    siw::CqeStatus::CONSTANTS,
    siw::NotifyFlags::CONSTANTS,
    LOOSE,
];

macro_rules! loose {
    ($(in $origin:ident $header:literal {
        $($constant:expr => $c_name:literal $(since $since:tt)?,)+
    })+) => {
        /// Those that belong to no type.
        const LOOSE: &[Constant] = &[$($(
            Constant {
                name: stringify!($constant),
                c_name: $c_name,
                c_header: $header,
                origin: origin!($origin $($since)?),
                value: $constant as u64,
            },
        )+)+];
    };
}

loose! {
    in kernel "rdma/rdma_user_cm.h" {
        ABI_VERSION => "RDMA_USER_CM_ABI_VERSION",
        MAX_PRIVATE_DATA => "RDMA_MAX_PRIVATE_DATA",
        IB_SERVICE_NAME_SIZE => "RDMA_USER_CM_IB_SERVICE_NAME_SIZE" since (7, 2),
    }
    in kernel "rdma/siw-abi.h" {
        siw::ABI_VERSION => "SIW_ABI_VERSION",
        siw::MAX_SGE => "SIW_MAX_SGE",
        siw::MAX_INLINE => "SIW_MAX_INLINE",
        siw::NO_QUEUE => "SIW_INVAL_UOBJ_KEY",
        siw::NotifyFlags::empty().bits() => "SIW_NOTIFY_NOT",
    }
    in user_space "rdma/rdma_cma.h" {
        UDP_QKEY => "RDMA_UDP_QKEY",
        MAX_RESPONDER_RESOURCES => "RDMA_MAX_RESP_RES",
        MAX_INITIATOR_DEPTH => "RDMA_MAX_INIT_DEPTH",
        IB_IP_PS_MASK => "RDMA_IB_IP_PS_MASK",
        IB_IP_PORT_MASK => "RDMA_IB_IP_PORT_MASK",
        IB_IP_PS_TCP => "RDMA_IB_IP_PS_TCP",
        IB_IP_PS_UDP => "RDMA_IB_IP_PS_UDP",
        IB_IP_PS_IB => "RDMA_IB_PS_IB",
    }
}
