//! What queue pairs send each other.

use std::sync::Arc;

use rdmacm_abi::uverbs::{ImmediateOrKey, WcStatus};
use rdmacm_core::Gid;

use super::memory::KeyedMemory;
use crate::network::{Arrival, MessageKind};
use crate::sim_state::SimState;

/// A message from queue pair to queue pair. It is as long as the request: the fabric
/// does not cut it into packets.
#[derive(Clone, Debug)]
pub(crate) enum DataMessage {
    Request(Message),
    Reply(Response),
}

/// What a request does at the peer, as `psn` says in this order.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(super) to: u32,
    pub(super) from: u32,
    pub(super) psn: u32,
    pub(super) is_solicited: bool,
    pub(super) operation: Operation,
}

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(super) to: u32,
    pub(super) psn: u32,
    pub(super) reply: Reply,
}

/// What a request does at the peer.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Send {
        data: Arc<[u8]>,
        with: With,
    },
    Write {
        to: KeyedMemory,
        data: Arc<[u8]>,
        immediate: Option<ImmediateOrKey>,
    },
    Read {
        from: KeyedMemory,
        length: u32,
    },
    CompareSwap {
        memory: KeyedMemory,
        compare: u64,
        swap: u64,
    },
    FetchAdd {
        memory: KeyedMemory,
        add: u64,
    },
}

/// What a message carries besides its data.
#[derive(Clone, Copy, Debug)]
pub(super) enum With {
    Nothing,
    Immediate(ImmediateOrKey),
    Invalidate(u32),
}

/// How a request ended at the peer.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Done,
    /// What was read.
    Data(Arc<[u8]>),
    /// There is nothing to receive into; the timer's number.
    ReceiverNotReady(u8),
    /// The status with which the request completes.
    Failed(WcStatus),
}

impl DataMessage {
    pub(crate) fn kind(&self) -> MessageKind {
        match self {
            Self::Request(_) => MessageKind::Data,
            Self::Reply(_) => MessageKind::DataReply,
        }
    }
}

/// Between which addresses a message travels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) source: Gid,
    pub(super) destination: Gid,
}

/// A message has arrived at a device.
pub(crate) fn receive(state: &mut SimState, arrival: Arrival, message: DataMessage) {
    match message {
        DataMessage::Request(message) => super::responder::receive(state, arrival, &message),
        DataMessage::Reply(response) => super::requester::receive(state, arrival, &response),
    }
}
