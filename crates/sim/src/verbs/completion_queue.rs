//! Completion queues.

use rdmacm_abi::uverbs::siw::{Cqe, CqeFlags, CqeStatus, Opcode};
use rdmacm_abi::uverbs::{WcOpcode, WcStatus, WorkCompletion};
use zerocopy::{IntoBytes, transmute};

use super::event_stream::StreamId;
use super::ring::Ring;
use super::slots::CompletionSlots;

/// A completion queue.
#[derive(Debug)]
pub(super) struct CompletionQueue {
    pub(super) context: u64,
    pub(super) user_handle: u64,
    pub(super) ring: CompletionRing,
    pub(super) channel: Option<StreamId>,
}

/// The completions, in the format of the device.
#[derive(Debug)]
pub(super) enum CompletionRing {
    /// A command arms the queue.
    Rxe { ring: Ring, armed: Armed },
    /// The program arms the queue in its memory.
    Siw(CompletionSlots),
}

/// Which completion is reported next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Armed {
    None,
    Solicited,
    Next,
}

impl CompletionQueue {
    /// Adds a completion; `false` if there is no room.
    pub(super) fn push(&mut self, completion: &WorkCompletion) -> bool {
        match &mut self.ring {
            CompletionRing::Rxe { ring, .. } => ring.push(completion.as_bytes()),
            CompletionRing::Siw(slots) => slots.push(&siw_element(completion)),
        }
    }

    /// Whether this completion is to be reported. Then no further one is until the
    /// queue is armed again (`rxe_cq_post`).
    pub(super) fn take_armed(&mut self, is_solicited: bool) -> bool {
        let armed = match &mut self.ring {
            CompletionRing::Rxe { armed, .. } => armed,
            CompletionRing::Siw(slots) => return slots.take_armed(is_solicited),
        };
        let is_reported = match armed {
            Armed::None => false,
            Armed::Solicited => is_solicited,
            Armed::Next => true,
        };
        if is_reported {
            *armed = Armed::None;
        }
        is_reported
    }

    /// `rxe_req_notify_cq`: a queue armed for any completion stays so.
    pub(super) fn arm(&mut self, solicited_only: bool) {
        let CompletionRing::Rxe { armed, .. } = &mut self.ring else {
            return;
        };
        if *armed != Armed::Next {
            *armed = if solicited_only {
                Armed::Solicited
            } else {
                Armed::Next
            };
        }
    }
}

/// A completion as siw writes it.
fn siw_element(completion: &WorkCompletion) -> Cqe {
    Cqe {
        id: completion.id,
        flags: CqeFlags::empty(),
        opcode: match completion.opcode {
            WcOpcode::RDMA_WRITE => Opcode::WRITE,
            WcOpcode::RDMA_READ => Opcode::READ,
            WcOpcode::RECV => Opcode::RECEIVE,
            _ => Opcode::SEND,
        },
        status: match completion.status {
            WcStatus::SUCCESS => CqeStatus::SUCCESS,
            WcStatus::LOC_LEN_ERR => CqeStatus::LOC_LEN_ERR,
            WcStatus::LOC_PROT_ERR => CqeStatus::LOC_PROT_ERR,
            WcStatus::LOC_QP_OP_ERR => CqeStatus::LOC_QP_OP_ERR,
            WcStatus::REM_INV_REQ_ERR => CqeStatus::REM_INV_REQ_ERR,
            WcStatus::WR_FLUSH_ERR => CqeStatus::WR_FLUSH_ERR,
            _ => CqeStatus::GENERAL_ERR,
        },
        bytes: completion.byte_len,
        immediate: transmute!([completion.immediate_or_key.key(), 0]),
        qp_number: completion.qp_number.into(),
    }
}
