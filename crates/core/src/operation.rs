//! Operations, as error texts name them.

use std::fmt;
use std::time::Duration;

use rdmacm_abi::{PortSpace, QpState};

use crate::address::CmAddr;
use crate::notification::Notification;

/// The operation that failed, with the values that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`EventChannel::create_id`](crate::EventChannel::create_id).
    CreateId(PortSpace),
    /// [`IdHandle::bind`](crate::IdHandle::bind).
    Bind(CmAddr),
    /// [`IdHandle::resolve_addr`](crate::IdHandle::resolve_addr).
    ResolveAddr {
        /// The source, if one was given.
        source: Option<CmAddr>,
        /// The destination.
        destination: CmAddr,
        /// The timeout.
        timeout: Duration,
    },
    /// [`IdHandle::resolve_route`](crate::IdHandle::resolve_route).
    ResolveRoute {
        /// The timeout.
        timeout: Duration,
    },
    /// [`IdHandle::listen`](crate::IdHandle::listen).
    Listen,
    /// [`IdHandle::addresses`](crate::IdHandle::addresses) and related methods.
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
    /// [`EventChannel::next_event`](crate::EventChannel::next_event) and related methods.
    GetEvent,
    /// [`IdHandle::connect`](crate::IdHandle::connect).
    Connect,
    /// [`IdHandle::accept`](crate::IdHandle::accept).
    Accept,
    /// [`IdHandle::establish`](crate::IdHandle::establish).
    Establish,
    /// [`IdHandle::reject`](crate::IdHandle::reject) and related methods.
    Reject,
    /// [`IdHandle::disconnect`](crate::IdHandle::disconnect).
    Disconnect,
    /// [`IdHandle::notify`](crate::IdHandle::notify).
    Notify(Notification),
    /// [`IdHandle::init_qp_attr`](crate::IdHandle::init_qp_attr).
    InitQpAttr(QpState),
    /// [`CmId::migrate`](crate::CmId::migrate).
    Migrate,
    /// [`IdHandle::join_multicast`](crate::IdHandle::join_multicast).
    JoinMulticast(CmAddr),
    /// [`IdHandle::leave_multicast`](crate::IdHandle::leave_multicast) and
    /// [`MulticastGroup::leave`](crate::MulticastGroup::leave).
    LeaveMulticast(CmAddr),
    /// [`IdHandle::write_event`](crate::IdHandle::write_event).
    WriteEvent,
    /// [`IdHandle::resolve_ib_service`](crate::IdHandle::resolve_ib_service).
    ResolveIbService,
    /// [`IdHandle::ib_service_records`](crate::IdHandle::ib_service_records).
    QueryIbService,
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
            Self::QueryAddresses => f.write_str("query the addresses"),
            Self::QueryGids => f.write_str("query the GIDs"),
            Self::QueryPathRecords => f.write_str("query the path records"),
            Self::SetTos(tos) => write!(f, "set the type of service to {tos:#04x}"),
            Self::SetReuseAddr(on) => write!(f, "set address reuse to {on}"),
            Self::SetAfOnly(on) => write!(f, "set one-family-only to {on}"),
            Self::SetAckTimeout(exponent) => write!(f, "set the ACK timeout to {exponent}"),
            Self::SetIbPath => f.write_str("set the path"),
            Self::GetEvent => f.write_str("get an event"),
            Self::Connect => f.write_str("connect"),
            Self::Accept => f.write_str("accept"),
            Self::Establish => f.write_str("establish"),
            Self::Reject => f.write_str("reject"),
            Self::Disconnect => f.write_str("disconnect"),
            Self::Notify(Notification::CommunicationEstablished) => {
                f.write_str("notify of data on the connection")
            }
            Self::Notify(Notification::PathMigrated) => f.write_str("notify of the path migrated"),
            Self::InitQpAttr(state) => write!(f, "query the attributes for {state:?}"),
            Self::Migrate => f.write_str("migrate the id to another channel"),
            Self::JoinMulticast(group) => write!(f, "join {}", Host(group)),
            Self::LeaveMulticast(group) => write!(f, "leave {}", Host(group)),
            Self::WriteEvent => f.write_str("write an event"),
            Self::ResolveIbService => f.write_str("resolve the InfiniBand service"),
            Self::QueryIbService => f.write_str("query the service's records"),
        }
    }
}

/// A group's address without the port, which means nothing.
struct Host<'a>(&'a CmAddr);

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.ip() {
            Some(ip) => ip.fmt(f),
            None => self.0.fmt(f),
        }
    }
}
