//! siw's send queues.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_INLINE, MAX_SGE, Opcode, Sqe, WqeFlags};
use zerocopy::FromZeros;

use super::queue::{Queue, copy_sges, limit};
use crate::provider::{SendRing, SendSlot, SlotPayload};
use crate::request::SendOperation;

/// How often to check for a free slot: the driver frees a slot just after it has
/// reported the completion of its request (`siw_sqe_complete`).
const FREE_CHECKS: usize = 10_000;

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

    fn has_room(&self, requests: usize) -> bool {
        let Some(last) = u32::try_from(requests).ok().and_then(|n| n.checked_sub(1)) else {
            return requests == 0;
        };
        // Slots become free in order.
        let is_free = || {
            let free = self.is_free(last);
            if !free {
                std::hint::spin_loop();
            }
            free
        };
        last < self.max_entries() && (0..FREE_CHECKS).any(|_| is_free())
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let (element, flags) = element(request);
        self.push_element(&element, flags);
    }
}

/// siw's opcode of an operation; `None` if siw does not support it.
pub(super) fn opcode(operation: &SendOperation) -> Option<Opcode> {
    Some(match operation {
        SendOperation::Send => Opcode::SEND,
        SendOperation::SendWithInvalidate(_) => Opcode::SEND_REMOTE_INV,
        SendOperation::Write(_) => Opcode::WRITE,
        SendOperation::Read(_) => Opcode::READ,
        _ => return None,
    })
}

fn element(request: &SendSlot<'_>) -> (Sqe, WqeFlags) {
    let mut flags = WqeFlags::empty();
    flags.set(WqeFlags::SIGNALLED, request.signaled);
    flags.set(WqeFlags::SOLICITED, request.solicited);
    // Reads are answered in order, and siw stops at a read with a fence.
    let is_read = matches!(request.operation, SendOperation::Read(_));
    flags.set(WqeFlags::READ_FENCE, request.fence && !is_read);
    let mut element = Sqe::new_zeroed();
    element.id = request.number;
    // Other operations are refused before.
    element.opcode = opcode(request.operation).unwrap_or(Opcode::SEND);
    if let Some(remote) = request.operation.remote() {
        element.remote_address = remote.address();
        element.rkey = remote.key();
    }
    if let SendOperation::SendWithInvalidate(key) = request.operation {
        element.rkey = *key;
    }
    match request.payload {
        SlotPayload::SgList(sg_list) => {
            element.sge_count = copy_sges(sg_list, &mut element.sges);
            if element.sge_count == 1 && !is_read && is_short(&element.sges) {
                element.sge_count = 2;
            }
        }
        SlotPayload::Inline([]) => {}
        SlotPayload::Inline(bytes) => {
            flags |= WqeFlags::INLINE;
            element.sge_count = 1;
            let inline = element.inline_data_mut();
            let length = bytes.len().min(inline.len());
            for (to, from) in inline.iter_mut().zip(bytes) {
                *to = *from;
            }
            if let Some(first) = element.sges.first_mut() {
                // At most the size of the inline data.
                first.length = u32::try_from(length).unwrap_or(u32::MAX);
            }
        }
    }
    (element, flags)
}

/// Whether siw would copy a single entry behind the message's header (`siw_try_1seg`), which
/// it does wrongly. If the entry crosses a page boundary, it copies the wrong bytes. It also
/// copies from the poster's address space, although its own thread, which has none, may be
/// sending by then: siw leaves requests to that thread after a hundred of them and when the
/// TCP socket is full. The request then fails, and with it the connection.
///
/// A second, empty entry prevents the copy. siw never uses it because it is the last
/// (`siw_tx_hdt`).
fn is_short(sg_list: &[AbiSge]) -> bool {
    /// `MAX_HDR_INLINE`.
    const MAX_LENGTH: u32 = 32;
    sg_list.first().is_some_and(|sge| sge.length <= MAX_LENGTH)
}
