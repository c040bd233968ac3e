//! The messages between the host and a program that makes connections for it: one line of JSON
//! each.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A step, with the number that its answer carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberedStep {
    /// The number.
    pub number: u64,
    /// The step.
    pub step: Step,
}

/// A command of the connection manager, or an auxiliary operation. The kernel assigns ids, the
/// host uids. A step that blocks does not delay others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// `CREATE_ID` for reliable connections; the answer contains the id.
    Create {
        /// The uid in its events.
        uid: u64,
    },
    /// `BIND`
    Bind {
        /// The id.
        id: u32,
        /// The address.
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
        /// The peer's address.
        address: SocketAddr,
        /// The kernel's timeout.
        timeout_ms: u32,
    },
    /// `RESOLVE_ROUTE`
    ResolveRoute {
        /// The id.
        id: u32,
    },
    /// Creates a reliable queue pair, which lasts as long as the program; the answer contains
    /// its number.
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
        /// The id of the request.
        id: u32,
        /// The uid in its events from now on.
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
    /// Runs a shell command line; answers `Failed` if it fails.
    Run {
        /// The command line.
        line: String,
    },
}

/// A line that the program writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// The answer to a step.
    Answer {
        /// The step's number.
        number: u64,
        /// The result.
        answer: Answer,
    },
    /// The kernel reported an event.
    Event(CmEvent),
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// It succeeded.
    Done,
    /// It created an object with this number.
    Created(u32),
    /// The kernel returned this error number.
    Errno(i32),
    /// It failed without an error number, or the shell command failed.
    Failed(String),
}

/// An event of the connection manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CmEvent {
    /// The uid of the id; for a connect request, of the listener.
    pub uid: u64,
    /// The id; for a connect request, the new id.
    pub id: u32,
    /// The event's number.
    pub kind: u32,
    /// 0, a negative errno, or a reject reason.
    pub status: i32,
    /// The private data without trailing zeros.
    pub data: String,
}
