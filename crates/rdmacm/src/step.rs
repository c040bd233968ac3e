//! The steps to a connection, as errors name them.

use std::fmt;

/// What was under way when something failed, in the order in which it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Step {
    /// Opening the connection manager's device.
    Open,
    /// Looking up the name.
    LookUp,
    /// Making and binding the id, and setting its options.
    Bind,
    /// Finding the address: route, interface, neighbour, RDMA device.
    ResolveAddress,
    /// Finding the route.
    ResolveRoute,
    /// Making the queue pair and readying it.
    QueuePair,
    /// Asking the peer, until it answers.
    Connect,
    /// Listening.
    Listen,
    /// Waiting for peers.
    Accept,
    /// Answering a peer, until it is there.
    Establish,
    /// Refusing a peer.
    Reject,
    /// Registering memory.
    Register,
    /// Sending a message.
    Send,
    /// Receiving a message.
    Receive,
    /// Reading from the peer's memory.
    Read,
    /// Writing to the peer's memory.
    Write,
    /// Disconnecting, or waiting until the connection is over.
    Close,
    /// Moving to another channel.
    Migrate,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open the connection manager",
            Self::LookUp => "look up",
            Self::Bind => "bind",
            Self::ResolveAddress => "resolve the address of",
            Self::ResolveRoute => "resolve the route to",
            Self::QueuePair => "ready a queue pair for",
            Self::Connect => "connect to",
            Self::Listen => "listen on",
            Self::Accept => "wait for peers on",
            Self::Establish => "accept",
            Self::Reject => "reject",
            Self::Register => "register memory for",
            Self::Send => "send to",
            Self::Receive => "receive from",
            Self::Read => "read from",
            Self::Write => "write to",
            Self::Close => "disconnect from",
            Self::Migrate => "move",
        })
    }
}
