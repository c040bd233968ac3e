//! The kernel of a host.

use rdmacm_abi::CommandNumber;

/// The kernel a [`Host`](crate::Host) runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelVersion {
    /// Linux 6.1, which has neither `RESOLVE_IB_SERVICE` nor `WRITE_CM_EVENT`, and longer timeouts on
    /// RoCE.
    Linux6_1,
    /// Linux 7.3.
    #[default]
    Linux7_3,
}

impl KernelVersion {
    /// The first number beyond the table of commands, `ucma_cmd_table`.
    pub(crate) fn end_of_table(self) -> CommandNumber {
        match self {
            Self::Linux6_1 => CommandNumber::RESOLVE_IB_SERVICE,
            Self::Linux7_3 => CommandNumber::new(CommandNumber::WRITE_CM_EVENT.number() + 1),
        }
    }

    /// Whether it has `RESOLVE_IB_SERVICE`.
    pub(crate) fn supports_services(self) -> bool {
        self.end_of_table() > CommandNumber::RESOLVE_IB_SERVICE
    }
}
