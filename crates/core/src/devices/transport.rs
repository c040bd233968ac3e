//! What devices speak.

use std::fmt;

/// The protocol a device speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// InfiniBand.
    InfiniBand,
    /// Omni-Path.
    OmniPath,
    /// RDMA over Converged Ethernet.
    RoCE,
    /// Internet Wide Area RDMA Protocol.
    IWarp,
    /// Cisco usNIC.
    UsNic,
    /// One that this library does not know, or that the kernel did not tell.
    Unknown,
}

impl Transport {
    pub(super) fn from_protocol(protocol: Option<&str>) -> Self {
        match protocol {
            Some("ib") => Self::InfiniBand,
            Some("opa") => Self::OmniPath,
            Some("roce") => Self::RoCE,
            Some("iw") => Self::IWarp,
            Some("usnic") => Self::UsNic,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::OmniPath => "Omni-Path",
            Self::RoCE => "RoCE",
            Self::IWarp => "iWARP",
            Self::UsNic => "usNIC",
            Self::Unknown => "unknown",
        })
    }
}
