//! The stages of a connection, as errors name them.

use std::fmt;

/// What failed, in the order of a connection's life. A queue pair is created while the route is
/// resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Opening `/dev/infiniband/rdma_cm`.
    Open,
    /// Listing the RDMA devices.
    ListDevices,
    /// Running the event loop.
    Drive,
    /// Looking up the name.
    LookUp,
    /// Creating and binding the id, and setting its options.
    Bind,
    /// Resolving the address: interface, neighbour and RDMA device.
    ResolveAddress,
    /// Resolving the route.
    ResolveRoute,
    /// Creating the queue pair and moving it to INIT.
    QueuePair,
    /// Sending the connect request and waiting for the reply.
    Connect,
    /// Listening.
    Listen,
    /// Waiting for a connect request.
    WaitForRequest,
    /// Accepting a connect request and waiting until the connection is established.
    Accept,
    /// Rejecting a connect request.
    Reject,
    /// Registering memory.
    Register,
    /// Sending a message.
    Send,
    /// Receiving a message.
    Receive,
    /// Reading from memory of the peer.
    Read,
    /// Writing to memory of the peer.
    Write,
    /// Joining a multicast group.
    JoinMulticast,
    /// Leaving a multicast group.
    LeaveMulticast,
    /// Disconnecting.
    Close,
    /// Waiting until the connection is closed.
    Closed,
    /// Migrating to another node.
    Migrate,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open the connection manager",
            Self::ListDevices => "list the RDMA devices",
            Self::Drive => "run the event loop",
            Self::LookUp => "look up",
            Self::Bind => "bind",
            Self::ResolveAddress => "resolve the address of",
            Self::ResolveRoute => "resolve the route to",
            Self::QueuePair => "create a queue pair for",
            Self::Connect => "connect to",
            Self::Listen => "listen on",
            Self::WaitForRequest => "wait for connections on",
            Self::Accept => "accept",
            Self::Reject => "reject",
            Self::Register => "register memory for",
            Self::Send => "send to",
            Self::Receive => "receive from",
            Self::Read => "read from",
            Self::Write => "write to",
            Self::JoinMulticast => "join",
            Self::LeaveMulticast => "leave",
            Self::Close => "disconnect from",
            Self::Closed => "wait for the end of the connection to",
            Self::Migrate => "migrate",
        })
    }
}
