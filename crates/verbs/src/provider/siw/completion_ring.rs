//! siw's completion queues.

use std::mem::offset_of;
use std::sync::atomic::{Ordering, fence};

use rdmacm_abi::uverbs::siw::{CqControl, CqQueue, Cqe, CqeFlags, CqeStatus, NotifyFlags, Opcode};
use rdmacm_abi::uverbs::{ImmediateOrKey, WcFlags, WcOpcode, WcStatus, WorkCompletion};
use zerocopy::FromZeros;

use crate::error::{Error, Result};
use crate::operation::Operation;
use crate::provider::{
    AfterClose, CompletionHint, CompletionRing, Content, Kernel, Slots, Uverbs, Word, Words,
    invalid_queue,
};

/// A completion queue in memory shared with siw. A flag in each slot says whether it holds a
/// completion; the word after the slots requests notifications.
#[derive(Debug)]
pub(crate) struct CompletionSlots {
    slots: Slots<Cqe>,
    pub(super) next: u32,
    control: Word,
}

impl Content for Cqe {
    type FilledBy = Kernel;
}

impl CompletionSlots {
    pub(super) fn map(uverbs: &Uverbs, operation: Operation, queue: CqQueue) -> Result<Self> {
        let invalid = || invalid_queue(operation);
        let end = size_of::<Cqe>().checked_mul(queue.entries as usize);
        let end = end.ok_or_else(invalid)?;
        let length = end
            .checked_add(size_of::<CqControl>())
            .ok_or_else(invalid)?;
        let mapping = uverbs.map(queue.offset, length, AfterClose::Copy)?;
        let (slots, control) = mapping.split_at(end).ok_or_else(invalid)?;
        let slots = Slots::new(slots, size_of::<Cqe>(), queue.entries);
        let control = Words::new(control).word(offset_of!(CqControl, flags));
        Ok(Self {
            slots: slots.ok_or_else(invalid)?,
            next: 0,
            control: control.ok_or_else(invalid)?,
        })
    }
}

const FLAGS: usize = offset_of!(Cqe, flags);

impl CompletionRing for CompletionSlots {
    fn capacity(&self) -> u32 {
        self.slots.count()
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "only what is of use is read")]
    fn oldest(&self) -> Option<(u32, WorkCompletion)> {
        let slot = self.slots.slot(self.next);
        if !is_valid(slot.load_byte(FLAGS)) {
            return None;
        }
        let mut element = Cqe::new_zeroed();
        slot.read(0, &mut element);
        Some((self.next, convert(&element)))
    }

    fn hint(&self) -> Option<CompletionHint> {
        Some(CompletionHint::Flags(self.slots.bytes(FLAGS)))
    }

    #[inline]
    fn next_slot(&self) -> Option<u32> {
        Some(self.next)
    }

    #[inline]
    fn remove(&mut self, place: u32) {
        self.slots.slot(place).store_byte(FLAGS, 0);
        self.next = place.wrapping_add(1);
    }

    /// Requests a notification for any completion: siw ignores whether the sender of a
    /// message solicited an event, and would never notify (`siw_rqe_complete`).
    fn arm(&mut self) -> bool {
        let flags = NotifyFlags::SOLICITED | NotifyFlags::NEXT_COMPLETION;
        self.control.get().store(flags.bits(), Ordering::Release);
        // The caller polls again after this: the fence orders the store before its loads.
        // The driver writes a slot, then reads this word, with a barrier between.
        fence(Ordering::SeqCst);
        true
    }

    fn can_resize(&self) -> bool {
        false
    }

    fn resize(&mut self, _: &Uverbs, _: u32, entries: u32) -> Result<()> {
        let operation = Operation::ResizeCompletionQueue { entries };
        Err(Error::invalid(
            operation,
            "siw cannot resize completion queues",
        ))
    }
}

/// Whether a slot with these flags holds a completion.
#[inline]
pub(crate) fn is_valid(flags: u8) -> bool {
    CqeFlags::from_bits_retain(flags).contains(CqeFlags::VALID)
}

/// Fills in what siw reports; the rest is zeros.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the path of each completion")]
fn convert(element: &Cqe) -> WorkCompletion {
    let mut completion = WorkCompletion {
        id: element.id,
        status: status(element.status),
        opcode: opcode(element.opcode),
        byte_len: element.bytes,
        // siw reports 64 bits; queue pair numbers have 24.
        qp_number: u32::try_from(element.qp_number).unwrap_or(u32::MAX),
        ..WorkCompletion::new_zeroed()
    };
    if element.flags.contains(CqeFlags::REM_INVAL) {
        completion.flags = WcFlags::WITH_INVALIDATE;
        completion.immediate_or_key = ImmediateOrKey::from_key(element.invalidated_key());
    }
    completion
}

#[inline]
fn status(status: CqeStatus) -> WcStatus {
    if status == CqeStatus::SUCCESS {
        WcStatus::SUCCESS
    } else {
        failure(status)
    }
}

#[cold]
fn failure(status: CqeStatus) -> WcStatus {
    match status {
        CqeStatus::LOC_LEN_ERR => WcStatus::LOC_LEN_ERR,
        CqeStatus::LOC_PROT_ERR => WcStatus::LOC_PROT_ERR,
        CqeStatus::LOC_QP_OP_ERR => WcStatus::LOC_QP_OP_ERR,
        CqeStatus::WR_FLUSH_ERR => WcStatus::WR_FLUSH_ERR,
        CqeStatus::BAD_RESP_ERR => WcStatus::BAD_RESP_ERR,
        CqeStatus::LOC_ACCESS_ERR => WcStatus::LOC_ACCESS_ERR,
        CqeStatus::REM_ACCESS_ERR => WcStatus::REM_ACCESS_ERR,
        CqeStatus::REM_INV_REQ_ERR => WcStatus::REM_INV_REQ_ERR,
        _ => WcStatus::GENERAL_ERR,
    }
}

fn opcode(opcode: Opcode) -> WcOpcode {
    match opcode {
        Opcode::WRITE => WcOpcode::RDMA_WRITE,
        Opcode::READ | Opcode::READ_LOCAL_INV => WcOpcode::RDMA_READ,
        Opcode::RECEIVE => WcOpcode::RECV,
        _ => WcOpcode::SEND,
    }
}
