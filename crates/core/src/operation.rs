//! What a caller asked for, as error messages say it.

use std::fmt;
use std::time::Duration;

use rdmacm_abi::PortSpace;

use crate::address::CmAddr;

/// What was asked for when an error happened, with the values that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`EventChannel::create_id`](crate::EventChannel::create_id).
    CreateId(PortSpace),
    /// [`IdHandle::bind`](crate::IdHandle::bind).
    Bind(CmAddr),
    /// [`IdHandle::resolve_addr`](crate::IdHandle::resolve_addr).
    ResolveAddr {
        /// The source asked for, if any.
        source: Option<CmAddr>,
        /// The destination.
        destination: CmAddr,
        /// How long the kernel was to try.
        timeout: Duration,
    },
    /// [`IdHandle::resolve_route`](crate::IdHandle::resolve_route).
    ResolveRoute {
        /// How long the kernel was to try.
        timeout: Duration,
    },
    /// [`IdHandle::listen`](crate::IdHandle::listen).
    Listen,
    /// [`IdHandle::addresses`](crate::IdHandle::addresses) and its kin.
    QueryAddresses,
    /// [`IdHandle::gids`](crate::IdHandle::gids).
    QueryGids,
    /// [`IdHandle::path_records`](crate::IdHandle::path_records).
    QueryPathRecords,
    /// [`IdHandle::set_tos`](crate::IdHandle::set_tos).
    SetTos(u8),
    /// [`IdHandle::set_reuse_addr`](crate::IdHandle::set_reuse_addr).
    SetReuseAddr(bool),
    /// [`IdHandle::set_af_only`](crate::IdHandle::set_af_only).
    SetAfOnly(bool),
    /// [`IdHandle::set_ack_timeout`](crate::IdHandle::set_ack_timeout).
    SetAckTimeout(u8),
    /// [`IdHandle::set_ib_path`](crate::IdHandle::set_ib_path).
    SetIbPath,
    /// [`EventChannel::next_event`](crate::EventChannel::next_event) and its kin.
    GetEvent,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateId(port_space) => write!(f, "create an id in port space {port_space}"),
            Self::Bind(address) => write!(f, "bind {address}"),
            Self::ResolveAddr {
                source: Some(source),
                destination,
                ..
            } => write!(f, "resolve {destination} from {source}"),
            Self::ResolveAddr { destination, .. } => write!(f, "resolve {destination}"),
            Self::ResolveRoute { .. } => f.write_str("resolve the route"),
            Self::Listen => f.write_str("listen"),
            Self::QueryAddresses => f.write_str("ask for the addresses"),
            Self::QueryGids => f.write_str("ask for the GIDs"),
            Self::QueryPathRecords => f.write_str("ask for the path records"),
            Self::SetTos(tos) => write!(f, "set the type of service to {tos:#04x}"),
            Self::SetReuseAddr(on) => write!(f, "set address reuse to {on}"),
            Self::SetAfOnly(on) => write!(f, "set one-family-only to {on}"),
            Self::SetAckTimeout(exponent) => write!(f, "set the ACK timeout to {exponent}"),
            Self::SetIbPath => f.write_str("set the path"),
            Self::GetEvent => f.write_str("get an event"),
        }
    }
}
