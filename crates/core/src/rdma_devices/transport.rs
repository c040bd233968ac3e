//! Transports.

use std::fmt;

/// The transport of a device.
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
    /// Unknown to this library, or not reported by the kernel.
    Unknown,
}

impl Transport {
    pub(super) fn from_protocol(protocol: Option<&[u8]>) -> Self {
        match protocol {
            Some(b"ib") => Self::InfiniBand,
            Some(b"opa") => Self::OmniPath,
            Some(b"roce") => Self::RoCE,
            Some(b"iw") => Self::IWarp,
            Some(b"usnic") => Self::UsNic,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_name_of_the_kernel_is_known() {
        for (protocol, transport, name) in [
            ("ib", Transport::InfiniBand, "InfiniBand"),
            ("opa", Transport::OmniPath, "Omni-Path"),
            ("roce", Transport::RoCE, "RoCE"),
            ("iw", Transport::IWarp, "iWARP"),
            ("usnic", Transport::UsNic, "usNIC"),
            ("new", Transport::Unknown, "unknown"),
        ] {
            assert_eq!(
                Transport::from_protocol(Some(protocol.as_bytes())),
                transport
            );
            assert_eq!(transport.to_string(), name);
        }
        assert_eq!(Transport::from_protocol(None), Transport::Unknown);
    }
}
