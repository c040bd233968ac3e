//! The outcomes of send requests.

use rdmacm_abi::uverbs::{WcOpcode, WcStatus, WorkCompletion, WrOpcode};

use crate::completion::{Report, WorkKind};

/// What the device has reported of a send request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: WcStatus,
    pub(super) vendor_error: u32,
    pub(super) opcode: WcOpcode,
    pub(super) bytes: u32,
    /// Whether the device may still report it, so that its completion queue entry stays
    /// reserved.
    pub(super) keeps_entry: bool,
}

impl Outcome {
    pub(super) fn of(wc: &WorkCompletion) -> Self {
        Self {
            status: wc.status,
            vendor_error: wc.vendor_error,
            opcode: wc.opcode,
            bytes: wc.byte_len,
            keeps_entry: false,
        }
    }

    /// Of a request that a later completion has shown to be complete.
    pub(super) fn implied(opcode: WrOpcode) -> Self {
        Self {
            status: WcStatus::SUCCESS,
            vendor_error: 0,
            opcode: match opcode {
                WrOpcode::RDMA_WRITE | WrOpcode::RDMA_WRITE_WITH_IMM => WcOpcode::RDMA_WRITE,
                WrOpcode::RDMA_READ => WcOpcode::RDMA_READ,
                WrOpcode::ATOMIC_CMP_AND_SWP => WcOpcode::COMP_SWAP,
                WrOpcode::ATOMIC_FETCH_AND_ADD => WcOpcode::FETCH_ADD,
                _ => WcOpcode::SEND,
            },
            bytes: 0,
            keeps_entry: false,
        }
    }

    /// What is reported of the request, which has this opcode.
    pub(super) fn report(self, opcode: WrOpcode) -> Report {
        if self.status == WcStatus::SUCCESS {
            Report::Sent {
                opcode: self.opcode,
                bytes: self.bytes,
            }
        } else {
            Report::Failed {
                status: self.status,
                vendor_error: self.vendor_error,
                kind: WorkKind::Send(opcode),
            }
        }
    }
}
