//! Events.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, transmute_ref};

use crate::{ConnParam, Ece, Reserved, UdParam};

numbers! {
    /// `enum rdma_cm_event_type`: what happened.
    #[doc(alias = "rdma_cm_event_type")]
    pub struct EventNumber(u32) in user_space "rdma/rdma_cma.h" {
        /// The address is resolved, the id has a device.
        ADDR_RESOLVED = 0 => "RDMA_CM_EVENT_ADDR_RESOLVED",
        /// The address could not be resolved; status is a negative errno.
        ADDR_ERROR = 1 => "RDMA_CM_EVENT_ADDR_ERROR",
        /// The route is resolved.
        ROUTE_RESOLVED = 2 => "RDMA_CM_EVENT_ROUTE_RESOLVED",
        /// The route could not be resolved; status is a negative errno.
        ROUTE_ERROR = 3 => "RDMA_CM_EVENT_ROUTE_ERROR",
        /// A peer wants to connect. The event's id is a new one, its uid that
        /// of the listener.
        CONNECT_REQUEST = 4 => "RDMA_CM_EVENT_CONNECT_REQUEST",
        /// The peer accepted; the queue pair is ours to move. InfiniBand and
        /// RoCE only.
        CONNECT_RESPONSE = 5 => "RDMA_CM_EVENT_CONNECT_RESPONSE",
        /// The connection failed; status is a negative errno.
        CONNECT_ERROR = 6 => "RDMA_CM_EVENT_CONNECT_ERROR",
        /// The peer did not answer, or on RoCE the neighbour's link-layer address changed; status
        /// is a negative errno, or a [`SidrStatus`](crate::SidrStatus).
        UNREACHABLE = 7 => "RDMA_CM_EVENT_UNREACHABLE",
        /// The peer refused; status is a
        /// [`RejectReason`](crate::RejectReason), or a negative errno on
        /// iWARP.
        REJECTED = 8 => "RDMA_CM_EVENT_REJECTED",
        /// The connection is up.
        ESTABLISHED = 9 => "RDMA_CM_EVENT_ESTABLISHED",
        /// The connection is down.
        DISCONNECTED = 10 => "RDMA_CM_EVENT_DISCONNECTED",
        /// The device is being removed.
        DEVICE_REMOVAL = 11 => "RDMA_CM_EVENT_DEVICE_REMOVAL",
        /// The group is joined. uid and id are those of the multicast object.
        MULTICAST_JOIN = 12 => "RDMA_CM_EVENT_MULTICAST_JOIN",
        /// The group could not be joined, or was lost; status is a negative
        /// errno. uid and id are those of the multicast object.
        MULTICAST_ERROR = 13 => "RDMA_CM_EVENT_MULTICAST_ERROR",
        /// The network device's address moved to another device.
        ADDR_CHANGE = 14 => "RDMA_CM_EVENT_ADDR_CHANGE",
        /// The queue pair's number may be used again.
        TIMEWAIT_EXIT = 15 => "RDMA_CM_EVENT_TIMEWAIT_EXIT",
        /// A service was found. Needs Linux 6.18 or newer.
        ADDRINFO_RESOLVED = 16 => "RDMA_CM_EVENT_ADDRINFO_RESOLVED" since (7, 2),
        /// No service was found; status is a negative errno. Needs Linux 6.18
        /// or newer.
        ADDRINFO_ERROR = 17 => "RDMA_CM_EVENT_ADDRINFO_ERROR" since (7, 2),
        /// Written by the program. Needs Linux 6.18 or newer.
        USER = 18 => "RDMA_CM_EVENT_USER" since (7, 2),
        /// Written by the program's library. Needs Linux 6.18 or newer.
        INTERNAL = 19 => "RDMA_CM_EVENT_INTERNAL" since (7, 2),
    }
}

/// `struct rdma_ucm_get_event`: takes the next event.
#[doc(alias = "rdma_ucm_get_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct GetEvent {
    /// Where the kernel puts [`EventResponse`]; filled in when the command is written.
    pub response: u64,
}

impl GetEvent {
    /// A request for the next event.
    #[must_use]
    pub const fn new() -> Self {
        Self { response: 0 }
    }
}

impl Default for GetEvent {
    fn default() -> Self {
        Self::new()
    }
}

/// `struct rdma_ucm_event_resp`: an event.
#[doc(alias = "rdma_ucm_event_resp", alias = "rdma_cm_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct EventResponse {
    /// The uid of the object the event is about; of the listener in a connect
    /// request.
    pub uid: u64,
    /// The object's id; the new one in a connect request.
    pub id: u32,
    /// What happened.
    pub event: EventNumber,
    /// The status as the header declares it; [`status`](Self::status) reads
    /// it as the kernel means it.
    #[doc(alias = "status")]
    pub raw_status: u32,
    /// The parameters.
    pub param: EventParam,
    /// Zero.
    pub reserved: Reserved<4>,
    /// The peer's vendor options. Zero from kernels before 5.8.
    pub ece: Ece,
}

impl EventResponse {
    /// The status: 0, a negative errno, or a positive code of the connection
    /// manager's protocol. Declared unsigned, signed in practice.
    #[must_use]
    pub const fn status(&self) -> i32 {
        i32::from_ne_bytes(self.raw_status.to_ne_bytes())
    }
}

/// The parameters of an event: a C union, read by the type of its id.
///
/// Every view is valid for any bytes. Which one the kernel filled in follows
/// from the **id's** queue pair type, not from the event's number, but for
/// events that the program wrote itself.
#[derive(Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct EventParam {
    // Words, not bytes: the union is 4-aligned, and so are its views.
    words: [u32; 76],
}

/// The union's first view and what the longest leaves after it.
#[derive(FromBytes, KnownLayout, Immutable)]
#[repr(C)]
struct ConnView {
    conn: ConnParam,
    rest: [u32; 8],
}

impl EventParam {
    /// The parameters of an event that has none.
    pub const ZERO: Self = Self { words: [0; 76] };

    /// As the events of connected (RC, UC, XRC) ids have them.
    #[must_use]
    pub const fn conn(&self) -> &ConnParam {
        let view: &ConnView = transmute_ref!(&self.words);
        &view.conn
    }

    /// As the events of datagram (UD) ids have them.
    #[must_use]
    pub const fn ud(&self) -> &UdParam {
        transmute_ref!(&self.words)
    }

    /// The number that [`WriteCmEvent`](crate::WriteCmEvent) was given, as
    /// USER and INTERNAL events have it. Needs Linux 6.18 or newer.
    #[doc(alias = "arg32")]
    #[must_use]
    pub fn arg(&self) -> u64 {
        let [first, second, ..] = self.words;
        zerocopy::transmute!([first, second])
    }

    /// Parameters of a connected id, as a kernel would fill them in.
    #[must_use]
    pub fn from_conn(conn: &ConnParam) -> Self {
        Self::from_bytes(conn.as_bytes())
    }

    /// Parameters of a datagram id, as a kernel would fill them in.
    #[must_use]
    pub fn from_ud(ud: &UdParam) -> Self {
        Self::from_bytes(ud.as_bytes())
    }

    /// The number of a USER or INTERNAL event, as a kernel would fill it in.
    #[must_use]
    pub fn from_arg(arg: u64) -> Self {
        Self::from_bytes(arg.as_bytes())
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let mut param = Self::ZERO;
        param.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
        param
    }
}

/// The kind is not known here, so no view is shown.
impl core::fmt::Debug for EventParam {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("EventParam").finish_non_exhaustive()
    }
}
