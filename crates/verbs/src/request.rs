//! Send requests.

use rdmacm_abi::uverbs::{SendFlags, WrOpcode};

use crate::address_handle::AddressHandle;
use crate::memory::{RemoteMemory, SgList};
use crate::provider::UdDestination;

/// The operation of a send request.
///
/// | device, type | operations |
/// |---|---|
/// | rxe, RC | all |
/// | rxe, UC | `Send`, `SendWithImmediate`, `Write`, `WriteWithImmediate` |
/// | rxe, UD | `Send`, `SendWithImmediate` |
/// | siw, RC | `Send`, `SendWithInvalidate`, `Write`, `Read` |
///
/// Others are refused. Source: `ibv_post_send(3)`, IBTA Vol 1 §9.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "ibv_wr_opcode")]
#[non_exhaustive]
pub enum SendOperation {
    /// Sends a message into a receive request of the peer.
    #[doc(alias = "IBV_WR_SEND")]
    Send,
    /// Sends a message with immediate data for the peer's completion, in native byte order.
    #[doc(alias = "IBV_WR_SEND_WITH_IMM")]
    SendWithImmediate(u32),
    /// Sends a message and invalidates this key of the peer's memory. rxe invalidates only memory
    /// that the kernel has registered: with the key of an exposed region the peer's receive
    /// request fails, and the connection ends.
    #[doc(alias = "IBV_WR_SEND_WITH_INV")]
    SendWithInvalidate(u32),
    /// Writes into the peer's memory.
    #[doc(alias = "IBV_WR_RDMA_WRITE")]
    Write(RemoteMemory),
    /// Writes into the peer's memory, and completes a receive request of the peer with this
    /// immediate data.
    #[doc(alias = "IBV_WR_RDMA_WRITE_WITH_IMM")]
    WriteWithImmediate(RemoteMemory, u32),
    /// Reads from the peer's memory.
    ///
    /// siw (Linux 6.1 to 7.3) returns wrong bytes for a read of 32 bytes or fewer that cross
    /// a page boundary of the peer (`siw_try_1seg`). While it is sending, it answers an empty
    /// read with its last message (`siw_activate_tx`), which closes the connection. Use an empty
    /// write instead of an empty read.
    ///
    /// siw of Linux 6.1, and of later kernels up to 7.1, checks the length of the answer only where
    /// it begins (`siw_proc_rresp`): a hostile peer can make it write beyond the memory of the
    /// request, up to the end of the last page of the region that it is a part of. siw of Linux 7.3
    /// checks each segment. Memory that was [allocated](crate::ProtectionDomain::allocate) or
    /// [exposed](crate::ProtectionDomain::expose) shares no page with anything else, but the parts
    /// of a [`Buffer`](crate::Buffer) share pages with each other. On siw a read is refused into
    /// bytes that were [registered](crate::ProtectionDomain::register), and into a part while
    /// others exist.
    #[doc(alias = "IBV_WR_RDMA_READ")]
    Read(RemoteMemory),
    /// Compares eight bytes of the peer's memory and replaces them if they are equal; returns
    /// the previous value. Soft devices use the byte order of the peer's host; some
    /// other devices use their own.
    #[doc(alias = "IBV_WR_ATOMIC_CMP_AND_SWP")]
    CompareSwap {
        /// The eight bytes, aligned to eight.
        remote: RemoteMemory,
        /// The expected value.
        compare: u64,
        /// The new value.
        swap: u64,
    },
    /// Adds to eight bytes of the peer's memory; returns the previous value.
    #[doc(alias = "IBV_WR_ATOMIC_FETCH_AND_ADD")]
    FetchAdd {
        /// The eight bytes, aligned to eight.
        remote: RemoteMemory,
        /// The value to add, modulo 2⁶⁴.
        add: u64,
    },
}

impl SendOperation {
    /// The kernel's opcode.
    #[must_use]
    #[inline]
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

    /// The peer's memory that it accesses, if any.
    #[must_use]
    #[inline]
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

    /// Whether it fetches bytes from the peer: a read or an atomic.
    #[must_use]
    #[inline]
    pub fn fetches(&self) -> bool {
        matches!(self, Self::Read(_)) || self.is_atomic()
    }

    /// Whether it is one of the two atomics.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        matches!(self, Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }
}

/// A send request: an operation, its memory and options.
///
/// It owns the memory until it is posted; then the queue does.
#[derive(Debug)]
#[doc(alias = "ibv_send_wr")]
#[must_use = "a request does nothing until it is posted"]
pub struct SendRequest<'a> {
    pub(crate) operation: SendOperation,
    /// The memory, if the bytes are not inline.
    pub(crate) sg_list: SgList,
    pub(crate) inline: Option<&'a [u8]>,
    pub(crate) flags: SendFlags,
    /// Whether it is a signalled SEND from memory, and has no destination.
    pub(crate) is_fast_path: bool,
    pub(crate) destination: Option<Destination>,
}

#[derive(Debug)]
pub(crate) struct Destination {
    pub(crate) address: AddressHandle,
    pub(crate) qp_number: u32,
    pub(crate) qkey: u32,
}

impl Destination {
    pub(crate) fn for_device(&self) -> UdDestination {
        UdDestination {
            address_handle: self.address.driver_number(),
            qp_number: self.qp_number,
            qkey: self.qkey,
        }
    }
}

impl<'a> SendRequest<'a> {
    /// A request that sends or writes the memory, in order, or reads into it. An atomic takes
    /// one entry of eight bytes for the previous value.
    #[inline]
    pub fn new(operation: SendOperation, memory: impl Into<SgList>) -> Self {
        Self {
            is_fast_path: matches!(operation, SendOperation::Send),
            operation,
            sg_list: memory.into(),
            inline: None,
            flags: SendFlags::SIGNALED,
            destination: None,
        }
    }

    /// A request that sends or writes these bytes. Posting copies them into the queue, so they
    /// need no registration and can be reused at once. There are at most
    /// [`QpCaps::max_inline_data`](crate::QpCaps::max_inline_data) of them, by default none; on siw
    /// only for `Send` and `Write`.
    #[doc(alias = "IBV_SEND_INLINE")]
    #[inline]
    pub fn inline(operation: SendOperation, bytes: &'a [u8]) -> Self {
        Self {
            inline: Some(bytes),
            is_fast_path: false,
            ..Self::new(operation, SgList::NONE)
        }
    }

    /// The device does not report its completion, unless it fails. Its completion is polled
    /// before that of the next signalled request, whose success shows that this one succeeded. A
    /// full queue must contain at least one signalled request.
    #[doc(alias = "IBV_SEND_SIGNALED")]
    pub fn unsignaled(mut self) -> Self {
        self.flags.remove(SendFlags::SIGNALED);
        self.is_fast_path = false;
        self
    }

    /// Solicits an event: notifies a peer that armed its queue for solicited completions only.
    #[doc(alias = "IBV_SEND_SOLICITED")]
    pub fn solicited(mut self) -> Self {
        self.flags |= SendFlags::SOLICITED;
        self
    }

    /// Starts after all earlier reads and atomics are complete.
    #[doc(alias = "IBV_SEND_FENCE")]
    pub fn fence(mut self) -> Self {
        self.flags |= SendFlags::FENCE;
        self
    }

    /// Sets the destination, on an unreliable datagram queue pair: the address handle, the
    /// number of the queue pair and its queue key.
    #[doc(alias = "ibv_ah")]
    pub fn destination(mut self, address: &AddressHandle, qp_number: u32, qkey: u32) -> Self {
        self.is_fast_path = false;
        self.destination = Some(Destination {
            address: address.clone(),
            qp_number,
            qkey,
        });
        self
    }

    /// Returns the memory.
    #[must_use]
    pub fn into_sg_list(self) -> SgList {
        self.sg_list
    }
}
