//! Requests as the program has posted them.

use std::sync::Arc;

use rdmacm_abi::uverbs::rxe::{RecvWqe, SendWqe};
use rdmacm_abi::uverbs::{SendFlags, Sge, WcOpcode, WcStatus, WrOpcode};
use zerocopy::FromBytes;

use super::Verbs;
use super::format::Format;
use super::memory::KeyedMemory;
use super::message::{Operation, Reply, With};

mod siw;

/// A request of a send queue.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) psn: u32,
    pub(super) opcode: WcOpcode,
    pub(super) is_signaled: bool,
    pub(super) is_solicited: bool,
    pub(super) length: u32,
    /// Where what is read is written.
    pub(super) sges: Vec<Sge>,
    /// What is sent, or why nothing is.
    pub(super) operation: Result<Operation, WcStatus>,
    /// How it ended, once the peer has replied.
    pub(super) reply: Option<Reply>,
}

/// A request of a receive queue.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) id: u64,
    pub(super) sges: Vec<Sge>,
}

/// The status of a request whose data cannot be read. Both drivers have one for all reasons to
/// send nothing (`rxe_requester`, `siw_qp_sq_process`).
const UNREADABLE: WcStatus = WcStatus::LOC_QP_OP_ERR;

impl Request {
    /// Reads a slot of the send queue.
    pub(super) fn read(
        verbs: &Verbs,
        (format, domain): (Format, u32),
        psn: u32,
        slot: &[u8],
    ) -> Option<Self> {
        match format {
            Format::Rxe => Self::read_rxe(verbs, domain, psn, slot),
            Format::Siw => siw::request(verbs, domain, psn, slot),
        }
    }

    fn read_rxe(verbs: &Verbs, domain: u32, psn: u32, slot: &[u8]) -> Option<Self> {
        let (element, tail) = SendWqe::read_from_prefix(slot).ok()?;
        let flags = element.wr.flags;
        let is_inline = flags.contains(SendFlags::INLINE);
        let sges = if is_inline {
            Vec::new()
        } else {
            sges(tail, element.dma.sge_count)
        };
        let data = || {
            if !is_inline {
                let gathered = verbs.gather(domain, &sges);
                return gathered.map(Arc::from).map_err(|_| UNREADABLE);
            }
            let length = usize::try_from(element.dma.length).unwrap_or(usize::MAX);
            tail.get(..length).map(Arc::from).ok_or(UNREADABLE)
        };
        let operation = operation(&element, data);
        Some(Self {
            id: element.wr.id,
            psn,
            opcode: completion_opcode(element.wr.opcode),
            is_signaled: flags.contains(SendFlags::SIGNALED),
            is_solicited: flags.contains(SendFlags::SOLICITED),
            length: element.dma.length,
            sges,
            operation,
            reply: None,
        })
    }

    /// The id of what is in a slot of the send queue.
    pub(super) fn id_of(format: Format, slot: &[u8]) -> Option<u64> {
        match format {
            Format::Rxe => {
                let (element, _) = SendWqe::read_from_prefix(slot).ok()?;
                Some(element.wr.id)
            }
            Format::Siw => siw::id(slot),
        }
    }

    /// Whether its reply carries data, so that no other reply stands for it.
    pub(super) fn fetches(&self) -> bool {
        matches!(
            self.operation,
            Ok(Operation::Read { .. } | Operation::CompareSwap { .. } | Operation::FetchAdd { .. })
        )
    }
}

impl Receive {
    /// Reads a slot of a receive queue.
    pub(super) fn read(format: Format, slot: &[u8]) -> Option<Self> {
        if format == Format::Siw {
            return siw::receive(slot);
        }
        let (element, tail) = RecvWqe::read_from_prefix(slot).ok()?;
        Some(Self {
            id: element.id,
            sges: sges(tail, element.dma.sge_count),
        })
    }
}

impl Receive {
    /// Whether a message of this length fits.
    pub(super) fn has_room(&self, length: usize) -> bool {
        let room: u64 = self.sges.iter().map(|sge| u64::from(sge.length)).sum();
        room >= length as u64
    }
}

/// The scatter/gather entries after an element.
fn sges(tail: &[u8], count: u32) -> Vec<Sge> {
    let entries = tail.chunks_exact(size_of::<Sge>());
    let entries = entries.filter_map(|bytes| Sge::read_from_bytes(bytes).ok());
    entries
        .take(count.try_into().unwrap_or(usize::MAX))
        .collect()
}

fn operation(
    element: &SendWqe,
    data: impl FnOnce() -> Result<Arc<[u8]>, WcStatus>,
) -> Result<Operation, WcStatus> {
    let wr = &element.wr;
    let rdma = wr.target.rdma();
    let remote = KeyedMemory {
        address: rdma.remote_address,
        key: rdma.rkey,
    };
    let atomic = wr.target.atomic();
    let memory = KeyedMemory {
        address: atomic.remote_address,
        key: atomic.rkey,
    };
    let send = |data, with| Operation::Send { data, with };
    let write = |data, immediate| Operation::Write {
        to: remote,
        data,
        immediate,
    };
    match wr.opcode {
        WrOpcode::SEND => Ok(send(data()?, With::Nothing)),
        WrOpcode::SEND_WITH_IMM => Ok(send(data()?, With::Immediate(wr.immediate_or_key))),
        WrOpcode::SEND_WITH_INV => Ok(send(data()?, With::Invalidate(wr.immediate_or_key.key()))),
        WrOpcode::RDMA_WRITE => Ok(write(data()?, None)),
        WrOpcode::RDMA_WRITE_WITH_IMM => Ok(write(data()?, Some(wr.immediate_or_key))),
        WrOpcode::RDMA_READ => Ok(Operation::Read {
            from: remote,
            length: element.dma.length,
        }),
        WrOpcode::ATOMIC_CMP_AND_SWP => Ok(Operation::CompareSwap {
            memory,
            compare: atomic.compare_add,
            swap: atomic.swap,
        }),
        WrOpcode::ATOMIC_FETCH_AND_ADD => Ok(Operation::FetchAdd {
            memory,
            add: atomic.compare_add,
        }),
        _ => Err(WcStatus::LOC_QP_OP_ERR),
    }
}

/// `wr_to_wc_opcode`.
fn completion_opcode(opcode: WrOpcode) -> WcOpcode {
    match opcode {
        WrOpcode::RDMA_WRITE | WrOpcode::RDMA_WRITE_WITH_IMM => WcOpcode::RDMA_WRITE,
        WrOpcode::RDMA_READ => WcOpcode::RDMA_READ,
        WrOpcode::ATOMIC_CMP_AND_SWP => WcOpcode::COMP_SWAP,
        WrOpcode::ATOMIC_FETCH_AND_ADD => WcOpcode::FETCH_ADD,
        _ => WcOpcode::SEND,
    }
}
