//! Queue pairs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rdmacm_abi::uverbs::{
    CreateQpResponse, ImmediateOrKey, ModifyQp, WcFlags, WcOpcode, WcStatus, WorkCompletion,
};
use rdmacm_abi::{QpState, QpType, Reserved};
use rdmacm_core::Gid;

use super::format::Format;
use super::request::Request;
use super::work_queue::{Taken, WorkQueue};

/// A queue pair of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpKey {
    pub(crate) host: usize,
    pub(crate) device: usize,
    pub(crate) number: u32,
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct QueuePair {
    pub(super) format: Format,
    pub(super) context: u64,
    pub(super) user_handle: u64,
    pub(super) domain: u32,
    pub(super) qp_type: QpType,
    pub(super) signal_all: bool,
    pub(super) send_cq: u32,
    pub(super) receive_cq: u32,
    pub(super) sends: WorkQueue,
    pub(super) receives: Receives,
    pub(super) caps: CreateQpResponse,
    pub(super) state: QpState,
    /// What it was modified to.
    pub(super) attr: ModifyQp,
    /// The address of an iWARP connection here.
    pub(super) source: Option<Gid>,
    pub(super) requester: Requester,
    pub(super) responder: Responder,
}

/// Where a queue pair takes what it receives into.
#[derive(Debug)]
pub(super) enum Receives {
    Own(WorkQueue),
    /// The handle of a shared receive queue.
    Shared(u32),
}

impl Receives {
    /// Whether it takes from this shared receive queue.
    pub(super) fn is_shared(&self, handle: u32) -> bool {
        matches!(self, Self::Shared(one) if *one == handle)
    }
}

/// The side of a queue pair that sends requests.
#[derive(Debug, Default)]
pub(super) struct Requester {
    /// The number of the request that is read next.
    pub(super) next: u32,
    /// That of the oldest request whose slot is not released.
    pub(super) oldest: u32,
    /// Requests that are not complete, oldest first.
    pub(super) requests: VecDeque<Request>,
    /// The packet sequence number of the next request.
    pub(super) next_psn: u32,
    /// That of the timer that runs; 0 for none.
    pub(super) timer: u64,
    pub(super) retries: u8,
    pub(super) rnr_retries: u8,
    /// Nothing is sent until the receiver may be ready.
    pub(super) waits_for_receiver: bool,
}

/// The side of a queue pair that carries out requests.
#[derive(Debug, Default)]
pub(super) struct Responder {
    /// The packet sequence number of the next request.
    pub(super) expected_psn: u32,
    /// What it has taken of its own receive queue.
    pub(super) received: Taken,
    /// What atomics have read, for those that are sent again.
    pub(super) atomics: BTreeMap<u32, Arc<[u8]>>,
}

/// Packet sequence numbers have 24 bits.
pub(super) const PSN_MASK: u32 = 0xff_ffff;

pub(super) fn next_psn(psn: u32) -> u32 {
    psn.wrapping_add(1) & PSN_MASK
}

/// Whether `psn` comes before `other`.
pub(super) fn is_before(psn: u32, other: u32) -> bool {
    psn.wrapping_sub(other) & PSN_MASK > PSN_MASK >> 1
}

impl QueuePair {
    pub(super) fn can_send(&self) -> bool {
        self.state == QpState::RTS
    }

    pub(super) fn can_receive(&self) -> bool {
        matches!(self.state, QpState::RTR | QpState::RTS)
    }

    /// The next request that the program has posted, which stays in its slot.
    pub(super) fn next_request(&mut self) -> Option<Vec<u8>> {
        let requester = &mut self.requester;
        let element = self.sends.posted(requester.next, requester.oldest)?;
        requester.next = requester.next.wrapping_add(1);
        Some(element)
    }

    /// Gives the slot of the oldest request back to the program.
    pub(super) fn release_request(&mut self) {
        self.sends.release(self.requester.oldest);
        self.requester.oldest = self.requester.oldest.wrapping_add(1);
    }

    /// Takes the next request of its own receive queue.
    pub(super) fn take_own_receive(&mut self) -> Option<Vec<u8>> {
        match &self.receives {
            Receives::Own(queue) => self.responder.received.take(queue),
            Receives::Shared(_) => None,
        }
    }

    /// A completion of one of its requests.
    pub(super) fn completion(&self, id: u64, status: WcStatus) -> WorkCompletion {
        WorkCompletion {
            id,
            status,
            opcode: WcOpcode::SEND,
            vendor_error: 0,
            byte_len: 0,
            immediate_or_key: ImmediateOrKey::NONE,
            qp_number: self.caps.number,
            source_qp_number: self.attr.destination_qp_number,
            flags: WcFlags::empty(),
            pkey_index: 0,
            source_lid: 0,
            service_level: 0,
            destination_path_bits: 0,
            port_number: self.attr.port_number,
            reserved: Reserved::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_sequence_numbers_begin_again() {
        assert_eq!(next_psn(PSN_MASK), 0);
        assert!(is_before(PSN_MASK, 0));
        assert!(!is_before(0, PSN_MASK));
        assert!(!is_before(7, 7));
    }
}
