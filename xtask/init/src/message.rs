//! What the host and a program that makes connections for it say to each other:
//! a line of JSON each.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A step with a number of its own, which its answer carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Its number.
    pub number: u64,
    /// What to do.
    pub step: Step,
}

/// One command of the connection manager, or what goes with one. Ids are the
/// kernel's numbers, uids the host's. A step that blocks holds up no other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// `CREATE_ID` for reliable connections; answered with the id.
    Create {
        /// What its events carry.
        uid: u64,
    },
    /// `BIND`
    Bind {
        /// The id.
        id: u32,
        /// To this address.
        address: SocketAddr,
    },
    /// `LISTEN`
    Listen {
        /// The id.
        id: u32,
    },
    /// `RESOLVE_ADDR`
    ResolveAddr {
        /// The id.
        id: u32,
        /// The peer.
        address: SocketAddr,
        /// How long the kernel may take.
        timeout_ms: u32,
    },
    /// `RESOLVE_ROUTE`
    ResolveRoute {
        /// The id.
        id: u32,
    },
    /// Makes a reliable queue pair, which lasts as long as the program;
    /// answered with its number.
    QueuePair {
        /// The RDMA device's name.
        device: String,
    },
    /// `CONNECT`
    Connect {
        /// The id.
        id: u32,
        /// The local queue pair.
        qp_number: u32,
        /// The private data.
        data: String,
    },
    /// `ACCEPT` of a connect request.
    Accept {
        /// The child that came with it.
        id: u32,
        /// What its events carry from now on.
        uid: u64,
        /// The local queue pair.
        qp_number: u32,
        /// The private data.
        data: String,
    },
    /// `ACCEPT` of a connect response.
    ReadyToUse {
        /// The id.
        id: u32,
    },
    /// `REJECT`
    Reject {
        /// The id.
        id: u32,
        /// The private data.
        data: String,
    },
    /// `DISCONNECT`
    Disconnect {
        /// The id.
        id: u32,
    },
    /// `DESTROY_ID`
    Destroy {
        /// The id.
        id: u32,
    },
    /// Runs a command line of the shell; an error when it fails.
    Run {
        /// The command line.
        line: String,
    },
}

/// What the program says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// An order was carried out, or not.
    Answer {
        /// The order's number.
        number: u64,
        /// What came of it.
        answer: Answer,
    },
    /// The kernel reported an event.
    Event(CmEvent),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was done, and this is the number of what it made.
    Made(u32),
    /// The kernel refused with this error number.
    Refused(i32),
    /// It could not be tried, or the shell's command failed.
    Failed(String),
}

/// An event of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CmEvent {
    /// The uid of the id it is about; of the listener in a connect request.
    pub uid: u64,
    /// The id; the new child in a connect request.
    pub id: u32,
    /// The event's number.
    pub kind: u32,
    /// 0, a negative errno or a reject reason.
    pub status: i32,
    /// The private data without the zeros behind it.
    pub data: String,
}
