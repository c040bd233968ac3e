//! Kinds of events.

use std::fmt;

use rdmacm_abi::EventNumber;

/// The kind of an event. Source: `enum rdma_cm_event_type` of the kernel's
/// `include/rdma/rdma_cm.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "rdma_cm_event_type")]
#[doc(alias = "rdma_event_str")]
pub enum EventKind {
    /// The address is resolved: the id has a source and a device.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_RESOLVED")]
    AddrResolved,
    /// The address could not be resolved; the id may try again. Of a datagram id that connects: the
    /// service has replied with no queue key, or with another one than the id's.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_ERROR")]
    AddrError,
    /// The route is resolved: the id may connect.
    #[doc(alias = "RDMA_CM_EVENT_ROUTE_RESOLVED")]
    RouteResolved,
    /// The route could not be resolved; the id may try again.
    #[doc(alias = "RDMA_CM_EVENT_ROUTE_ERROR")]
    RouteError,
    /// A peer wants to connect; the event carries the child id.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_REQUEST")]
    ConnectRequest,
    /// The peer has accepted; this side must call `establish`.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_RESPONSE")]
    ConnectResponse,
    /// Connecting failed on this side.
    #[doc(alias = "RDMA_CM_EVENT_CONNECT_ERROR")]
    ConnectError,
    /// The peer did not answer; or, on RoCE, the link-layer address of the neighbour changed, at
    /// any time after the route was resolved.
    #[doc(alias = "RDMA_CM_EVENT_UNREACHABLE")]
    Unreachable,
    /// The peer rejected the connection.
    #[doc(alias = "RDMA_CM_EVENT_REJECTED")]
    Rejected,
    /// The connection is established.
    #[doc(alias = "RDMA_CM_EVENT_ESTABLISHED")]
    Established,
    /// The connection is disconnected.
    #[doc(alias = "RDMA_CM_EVENT_DISCONNECTED")]
    Disconnected,
    /// The id's device is being removed; drop the id.
    #[doc(alias = "RDMA_CM_EVENT_DEVICE_REMOVAL")]
    DeviceRemoval,
    /// The multicast group is joined.
    #[doc(alias = "RDMA_CM_EVENT_MULTICAST_JOIN")]
    MulticastJoin,
    /// The multicast group could not be joined, or was lost.
    #[doc(alias = "RDMA_CM_EVENT_MULTICAST_ERROR")]
    MulticastError,
    /// The id's network interface failed over to another device.
    #[doc(alias = "RDMA_CM_EVENT_ADDR_CHANGE")]
    AddrChange,
    /// The queue pair's number may be used again. InfiniBand and RoCE, after a disconnect.
    #[doc(alias = "RDMA_CM_EVENT_TIMEWAIT_EXIT")]
    TimewaitExit,
    /// A service or a name is resolved. From the kernel since Linux 6.18.
    #[doc(alias = "RDMA_CM_EVENT_ADDRINFO_RESOLVED")]
    AddrInfoResolved,
    /// A service or a name could not be resolved. From the kernel since Linux 6.18.
    #[doc(alias = "RDMA_CM_EVENT_ADDRINFO_ERROR")]
    AddrInfoError,
    /// An event that [`IdHandle::write_event`](crate::IdHandle::write_event) wrote. Needs
    /// Linux 6.18 or newer.
    #[doc(alias = "RDMA_CM_EVENT_USER")]
    User,
    /// An internal event of a library. Needs Linux 6.18 or newer.
    #[doc(alias = "RDMA_CM_EVENT_INTERNAL")]
    Internal,
    /// A number this library does not know.
    Unknown(u32),
}

impl EventKind {
    /// Whether every event of this kind is a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(
            self,
            Self::AddrError
                | Self::RouteError
                | Self::ConnectError
                | Self::Unreachable
                | Self::Rejected
                | Self::DeviceRemoval
                | Self::MulticastError
                | Self::AddrInfoError
        )
    }
}

impl From<EventNumber> for EventKind {
    fn from(number: EventNumber) -> Self {
        match number {
            EventNumber::ADDR_RESOLVED => Self::AddrResolved,
            EventNumber::ADDR_ERROR => Self::AddrError,
            EventNumber::ROUTE_RESOLVED => Self::RouteResolved,
            EventNumber::ROUTE_ERROR => Self::RouteError,
            EventNumber::CONNECT_REQUEST => Self::ConnectRequest,
            EventNumber::CONNECT_RESPONSE => Self::ConnectResponse,
            EventNumber::CONNECT_ERROR => Self::ConnectError,
            EventNumber::UNREACHABLE => Self::Unreachable,
            EventNumber::REJECTED => Self::Rejected,
            EventNumber::ESTABLISHED => Self::Established,
            EventNumber::DISCONNECTED => Self::Disconnected,
            EventNumber::DEVICE_REMOVAL => Self::DeviceRemoval,
            EventNumber::MULTICAST_JOIN => Self::MulticastJoin,
            EventNumber::MULTICAST_ERROR => Self::MulticastError,
            EventNumber::ADDR_CHANGE => Self::AddrChange,
            EventNumber::TIMEWAIT_EXIT => Self::TimewaitExit,
            EventNumber::ADDRINFO_RESOLVED => Self::AddrInfoResolved,
            EventNumber::ADDRINFO_ERROR => Self::AddrInfoError,
            EventNumber::USER => Self::User,
            EventNumber::INTERNAL => Self::Internal,
            other => Self::Unknown(other.number()),
        }
    }
}

impl fmt::Display for EventKind {
    /// The field's name without its prefix, as in `ADDR_RESOLVED`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AddrResolved => "ADDR_RESOLVED",
            Self::AddrError => "ADDR_ERROR",
            Self::RouteResolved => "ROUTE_RESOLVED",
            Self::RouteError => "ROUTE_ERROR",
            Self::ConnectRequest => "CONNECT_REQUEST",
            Self::ConnectResponse => "CONNECT_RESPONSE",
            Self::ConnectError => "CONNECT_ERROR",
            Self::Unreachable => "UNREACHABLE",
            Self::Rejected => "REJECTED",
            Self::Established => "ESTABLISHED",
            Self::Disconnected => "DISCONNECTED",
            Self::DeviceRemoval => "DEVICE_REMOVAL",
            Self::MulticastJoin => "MULTICAST_JOIN",
            Self::MulticastError => "MULTICAST_ERROR",
            Self::AddrChange => "ADDR_CHANGE",
            Self::TimewaitExit => "TIMEWAIT_EXIT",
            Self::AddrInfoResolved => "ADDRINFO_RESOLVED",
            Self::AddrInfoError => "ADDRINFO_ERROR",
            Self::User => "USER",
            Self::Internal => "INTERNAL",
            Self::Unknown(number) => return write!(f, "event {number}"),
        })
    }
}
