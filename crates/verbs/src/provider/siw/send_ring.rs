//! siw's send queues.

use std::mem::offset_of;

use rdmacm_abi::uverbs::siw::{MAX_INLINE, MAX_SGE, Opcode, Sqe, WqeFlags};
use rdmacm_abi::uverbs::{SendFlags, Sge as AbiSge};

use super::queue::{Queue, limit};
use crate::provider::{SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

impl SendRing for Queue<Sqe> {
    fn capacity(&self) -> u32 {
        self.max_entries()
    }

    fn max_inline(&self) -> u32 {
        limit(MAX_INLINE)
    }

    fn max_sges(&self) -> u32 {
        limit(MAX_SGE)
    }

    fn room(&self, requests: usize) -> usize {
        // The driver frees a slot when it begins with its request (`siw_activate_tx_from_sq`), but
        // for a flush.
        self.free_ahead(requests)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push_send(&mut self, number: u64, flags: SendFlags, sge: AbiSge, first: impl FnOnce()) {
        let slot = self.slot();
        slot.put(offset_of!(Sqe, id), &number);
        slot.put(offset_of!(Sqe, opcode), &Opcode::SEND);
        slot.put(offset_of!(Sqe, sges), &sge);
        let count = if sge.length > MAX_COPIED {
            1_u8
        } else if sge.length > 0 {
            slot.put(SECOND_SGE, &EMPTY);
            2
        } else {
            0
        };
        slot.put(offset_of!(Sqe, sge_count), &count);
        first();
        self.hand_over(wqe_flags(flags));
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the path of each request")]
    fn push(&mut self, request: &SendSlot<'_>) {
        let slot = self.slot();
        slot.put(offset_of!(Sqe, id), &request.number);
        // Other operations are refused before.
        let opcode = opcode(request.operation).unwrap_or(Opcode::SEND);
        slot.put(offset_of!(Sqe, opcode), &opcode);
        if opcode != Opcode::SEND {
            self.put_remote(request.operation);
        }
        // Reads are answered in order, and siw stops at a read with a fence.
        let is_read = opcode == Opcode::READ;
        let mut flags = wqe_flags(request.flags);
        if is_read {
            flags.remove(WqeFlags::READ_FENCE);
        }
        let sge_count = match request.payload {
            SlotPayload::SgList(sg_list) => match self.put_sges(sg_list) {
                // siw uses the first entry of a read even if it has none (`siw_read_to_orq`,
                // `siw_qp_prepare_tx`): it would read into memory of an earlier request.
                0 if is_read => {
                    slot.put(offset_of!(Sqe, sges), &EMPTY);
                    1
                }
                1 if !is_read && is_short(sg_list) => {
                    slot.put(SECOND_SGE, &EMPTY);
                    2
                }
                count => count,
            },
            SlotPayload::Inline([]) => 0_u8,
            SlotPayload::Inline(bytes) => {
                flags |= WqeFlags::INLINE;
                self.put_inline(bytes);
                1
            }
        };
        slot.put(offset_of!(Sqe, sge_count), &sge_count);
        self.hand_over(flags);
    }
}

#[inline]
fn wqe_flags(flags: SendFlags) -> WqeFlags {
    let mut wqe = WqeFlags::empty();
    wqe.set(WqeFlags::SIGNALLED, flags.contains(SendFlags::SIGNALED));
    wqe.set(WqeFlags::SOLICITED, flags.contains(SendFlags::SOLICITED));
    wqe.set(WqeFlags::READ_FENCE, flags.contains(SendFlags::FENCE));
    wqe
}

/// siw's opcode of an operation; `None` if siw does not support it.
#[inline]
pub(super) fn opcode(operation: &SendOperation) -> Option<Opcode> {
    Some(match operation {
        SendOperation::Send => Opcode::SEND,
        SendOperation::SendWithInvalidate(_) => Opcode::SEND_REMOTE_INV,
        SendOperation::Write(_) => Opcode::WRITE,
        SendOperation::Read(_) => Opcode::READ,
        _ => return None,
    })
}

/// The offset of the second scatter/gather entry, where inline data begin.
const SECOND_SGE: usize = offset_of!(Sqe, sges) + size_of::<AbiSge>();

/// The longest entry that siw copies after the message's header: `MAX_HDR_INLINE`.
const MAX_COPIED: u32 = 32;

const EMPTY: AbiSge = AbiSge {
    address: 0,
    length: 0,
    lkey: 0,
};

impl Queue<Sqe> {
    /// Writes the peer's memory or key.
    #[inline]
    fn put_remote(&self, operation: &SendOperation) {
        let (address, key) = match (operation, operation.remote()) {
            (SendOperation::SendWithInvalidate(key), _) => (0, *key),
            (_, Some(remote)) => (remote.address(), remote.key()),
            (_, None) => (0, 0),
        };
        let slot = self.slot();
        slot.put(offset_of!(Sqe, remote_address), &address);
        slot.put(offset_of!(Sqe, rkey), &key);
    }

    /// Writes inline data, whose length is in the first entry.
    fn put_inline(&self, bytes: &[u8]) {
        let bytes = bytes.get(..MAX_INLINE).unwrap_or(bytes);
        let first = AbiSge {
            length: limit(bytes.len()),
            ..EMPTY
        };
        self.slot().put(offset_of!(Sqe, sges), &first);
        self.put_bytes(SECOND_SGE, bytes);
    }
}

/// Whether siw would copy a single entry after the message's header (`siw_try_1seg`), which
/// it does wrongly. If the entry crosses a page boundary, it copies the wrong bytes. It also
/// copies from the poster's address space, although its own thread, which has none, may be
/// sending by then: siw leaves requests to that thread after a hundred of them and when the
/// TCP socket is full. The request then fails, and with it the connection.
///
/// A second, empty entry prevents the copy. siw never uses it because it is the last
/// (`siw_tx_hdt`).
fn is_short(sg_list: &[AbiSge]) -> bool {
    let mut non_empty = sg_list.iter().filter(|sge| sge.length > 0);
    non_empty.next().is_some_and(|sge| sge.length <= MAX_COPIED)
}
