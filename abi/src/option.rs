//! Options of an id.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

numbers! {
    /// Which set of options a name belongs to.
    pub struct OptionLevel(u32) in kernel "rdma/rdma_user_cm.h" {
        /// Options of any id: [`IdOption`].
        ID = 0 => "RDMA_OPTION_ID",
        /// Options of InfiniBand: [`IbOption`].
        IB = 1 => "RDMA_OPTION_IB",
    }

    /// The options of level [`OptionLevel::ID`].
    pub struct IdOption(u32) in kernel "rdma/rdma_user_cm.h" {
        /// The type of service, one byte. Set it before the route is
        /// resolved.
        TOS = 0 => "RDMA_OPTION_ID_TOS",
        /// Whether the address may be bound again, a C `int` of 0 or 1.
        REUSEADDR = 1 => "RDMA_OPTION_ID_REUSEADDR",
        /// Whether an IPv6 wildcard keeps to IPv6, a C `int` of 0 or 1; only
        /// before or just after binding.
        AFONLY = 2 => "RDMA_OPTION_ID_AFONLY",
        /// The queue pair's ACK timeout, one byte of 0 to 31: 4.096 µs times
        /// two to this power. RC and initiators of XRC only.
        ACK_TIMEOUT = 3 => "RDMA_OPTION_ID_ACK_TIMEOUT",
    }

    /// The options of level [`OptionLevel::IB`].
    pub struct IbOption(u32) in kernel "rdma/rdma_user_cm.h" {
        /// The path to use, [`PathRecordData`](crate::PathRecordData)s of
        /// which one has the flags
        /// [`USABLE`](crate::PathRecordData::USABLE); in place of resolving
        /// the route. Event `ROUTE_RESOLVED` follows.
        PATH = 1 => "RDMA_OPTION_IB_PATH",
    }
}

/// `struct rdma_ucm_set_option`: sets an option.
#[doc(alias = "rdma_ucm_set_option")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct SetOption {
    /// Where the value is; filled in when the command is written.
    #[doc(alias = "optval")]
    pub value: u64,
    /// The id.
    pub id: u32,
    /// Which set of options the name belongs to.
    pub level: OptionLevel,
    /// The option: [`IdOption`] or [`IbOption`].
    #[doc(alias = "optname")]
    pub name: u32,
    /// Bytes of the value; filled in when the command is written.
    #[doc(alias = "optlen")]
    pub size: u32,
}

impl SetOption {
    /// A request to set an option of level [`OptionLevel::ID`].
    #[must_use]
    pub const fn id(id: u32, option: IdOption) -> Self {
        Self::new(id, OptionLevel::ID, option.number())
    }

    /// A request to set an option of level [`OptionLevel::IB`].
    #[must_use]
    pub const fn ib(id: u32, option: IbOption) -> Self {
        Self::new(id, OptionLevel::IB, option.number())
    }

    /// A request to set any option, known or not.
    #[must_use]
    pub const fn new(id: u32, level: OptionLevel, name: u32) -> Self {
        Self {
            value: 0,
            id,
            level,
            name,
            size: 0,
        }
    }
}
