//! What is asked of a queue pair.

use rdmacm_abi::uverbs::WrOpcode;

use crate::address_handle::AddressHandle;
use crate::memory::{RemoteMemory, SgList};

/// What a send request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_wr_opcode")]
#[non_exhaustive]
pub enum SendOperation {
    /// Sends a message into a receive request of the peer.
    #[doc(alias = "IBV_WR_SEND")]
    Send,
    /// The same, with a word for the peer's completion, in this machine's order.
    #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
    SendWithImmediate(u32),
    /// The same, and the peer's device forgets this key of its own memory.
    #[doc(alias = "IBV_WR_SEND_WITH_INV")]
    SendWithInvalidate(u32),
    /// Writes into the peer's memory.
    #[doc(alias = "IBV_WR_RDMA_WRITE")]
    Write(RemoteMemory),
    /// The same, and takes a receive request of the peer for this word.
    #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
    WriteWithImmediate(RemoteMemory, u32),
    /// Reads from the peer's memory.
    ///
    /// siw (Linux 6.1 to 7.3) gives fewer than 64 bytes that lie on two pages of the
    /// peer's wrong (`siw_try_1seg`), and answers a read of nothing, if it is busy
    /// sending, with what it sent last (`siw_activate_tx`), which ends the
    /// connection. Where a request is to do nothing, write nothing.
    #[doc(alias = "IBV_WR_RDMA_READ")]
    Read(RemoteMemory),
    /// Compares eight bytes of the peer's, and puts others there if they are equal;
    /// what was there comes back. In the order of the peer's machine, as seen by a
    /// soft device; some others want theirs.
    #[doc(alias = "IBV_WR_ATOMIC_CMP_AND_SWP")]
    CompareSwap {
        /// The eight bytes, aligned to eight.
        remote: RemoteMemory,
        /// What may be there.
        compare: u64,
        /// What is to be there.
        swap: u64,
    },
    /// Adds to eight bytes of the peer's; what was there comes back.
    #[doc(alias = "IBV_WR_ATOMIC_FETCH_AND_ADD")]
    FetchAdd {
        /// The eight bytes, aligned to eight.
        remote: RemoteMemory,
        /// What to add, modulo 2⁶⁴.
        add: u64,
    },
}

impl SendOperation {
    /// The kernel's number.
    #[must_use]
    pub fn opcode(&self) -> WrOpcode {
        match self {
            Self::Send => WrOpcode::SEND,
            Self::SendWithImmediate(_) => WrOpcode::SEND_WITH_IMM,
            Self::SendWithInvalidate(_) => WrOpcode::SEND_WITH_INV,
            Self::Write(_) => WrOpcode::RDMA_WRITE,
            Self::WriteWithImmediate(..) => WrOpcode::RDMA_WRITE_WITH_IMM,
            Self::Read(_) => WrOpcode::RDMA_READ,
            Self::CompareSwap { .. } => WrOpcode::ATOMIC_CMP_AND_SWP,
            Self::FetchAdd { .. } => WrOpcode::ATOMIC_FETCH_AND_ADD,
        }
    }

    /// The peer's memory, if it reaches there.
    #[must_use]
    pub fn remote(&self) -> Option<RemoteMemory> {
        match *self {
            Self::Write(remote)
            | Self::WriteWithImmediate(remote, _)
            | Self::Read(remote)
            | Self::CompareSwap { remote, .. }
            | Self::FetchAdd { remote, .. } => Some(remote),
            _ => None,
        }
    }

    /// Whether it brings the peer's bytes here.
    #[must_use]
    pub fn fetches(&self) -> bool {
        matches!(self, Self::Read(_)) || self.is_atomic()
    }

    /// Whether it is one of the two atomics.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        matches!(self, Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }
}

/// A request to a send queue: what to do, with which memory, and how.
///
/// It owns the memory, until it is posted; then the queue does.
#[derive(Debug)]
#[doc(alias = "ibv_send_wr")]
#[must_use = "a request does nothing until it is posted"]
pub struct SendRequest<'a> {
    pub(crate) operation: SendOperation,
    pub(crate) payload: Payload<'a>,
    pub(crate) signaled: bool,
    pub(crate) solicited: bool,
    pub(crate) fence: bool,
    pub(crate) destination: Option<Destination>,
}

#[derive(Debug)]
pub(crate) enum Payload<'a> {
    SgList(SgList),
    Inline(&'a [u8]),
}

#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) address: AddressHandle,
    pub(crate) queue_pair: u32,
    pub(crate) queue_key: u32,
}

impl<'a> SendRequest<'a> {
    /// Does this with that memory: sends or writes it, in order, or reads into it.
    /// An atomic takes one piece of eight bytes for what comes back.
    pub fn new(operation: SendOperation, memory: impl Into<SgList>) -> Self {
        Self::of(operation, Payload::SgList(memory.into()))
    }

    /// Sends or writes these bytes, which are copied into the queue as it is
    /// posted: no registration, and nothing to wait for.
    #[doc(alias = "IBV_SEND_INLINE")]
    pub fn inline(operation: SendOperation, bytes: &'a [u8]) -> Self {
        Self::of(operation, Payload::Inline(bytes))
    }

    fn of(operation: SendOperation, payload: Payload<'a>) -> Self {
        Self {
            operation,
            payload,
            signaled: true,
            solicited: false,
            fence: false,
            destination: None,
        }
    }

    /// Without a completion of its own: its memory comes back with that of a later
    /// one of the queue, or of an error. At least one of the requests that fill a
    /// queue must be signalled.
    #[doc(alias = "IBV_SEND_SIGNALED")]
    pub fn unsignaled(mut self) -> Self {
        self.signaled = false;
        self
    }

    /// Wakes a peer that waits for such messages only.
    #[doc(alias = "IBV_SEND_SOLICITED")]
    pub fn solicited(mut self) -> Self {
        self.solicited = true;
        self
    }

    /// Waits for the reads and atomics before it.
    #[doc(alias = "IBV_SEND_FENCE")]
    pub fn fence(mut self) -> Self {
        self.fence = true;
        self
    }

    /// To whom it goes, on an unreliable datagram queue pair: by which way, to
    /// which queue pair, with which queue key.
    #[doc(alias = "ibv_ah")]
    pub fn to(mut self, address: &AddressHandle, queue_pair: u32, queue_key: u32) -> Self {
        self.destination = Some(Destination {
            address: address.clone(),
            queue_pair,
            queue_key,
        });
        self
    }

    /// The memory, back.
    #[must_use]
    pub fn into_sg_list(self) -> SgList {
        match self.payload {
            Payload::SgList(sg_list) => sg_list,
            Payload::Inline(_) => SgList::NONE,
        }
    }
}
