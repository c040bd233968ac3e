//! siw's send queues.

use rdmacm_abi::uverbs::Sge as AbiSge;
use rdmacm_abi::uverbs::siw::{MAX_INLINE, MAX_SGE, Opcode, Sqe, WqeFlags};
use zerocopy::FromZeros;

use super::queue::{Queue, copy, most};
use crate::error::Result;
use crate::operation::Operation;
use crate::provider::{SendRing, SendSlot, SlotPayload, Uverbs};
use crate::request::SendOperation;

/// How often to look again for a slot that the driver frees just after it has
/// reported the request that was there (`siw_sqe_complete`).
const LOOKS: usize = 10_000;

/// A send queue.
#[derive(Debug)]
pub(super) struct Sends(pub(super) Queue<Sqe>);

impl Sends {
    pub(super) fn map(
        uverbs: &Uverbs,
        operation: Operation,
        offset: u64,
        entries: u32,
    ) -> Result<Self> {
        Queue::map(uverbs, operation, offset, entries).map(Self)
    }
}

impl SendRing for Sends {
    fn capacity(&self) -> u32 {
        self.0.capacity()
    }

    fn max_inline(&self) -> u32 {
        most(MAX_INLINE)
    }

    fn max_sges(&self) -> u32 {
        most(MAX_SGE)
    }

    fn has_room(&self, requests: usize) -> bool {
        let Some(last) = u32::try_from(requests).ok().and_then(|n| n.checked_sub(1)) else {
            return requests == 0;
        };
        // Slots become free in order.
        let is_free = || {
            let free = self.0.is_free(last);
            if !free {
                std::hint::spin_loop();
            }
            free
        };
        last < self.capacity() && (0..LOOKS).any(|_| is_free())
    }

    fn push(&mut self, request: &SendSlot<'_>) {
        let (element, flags) = element(request);
        self.0.push(&element, flags);
    }
}

/// siw's number for it, if it has one.
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
    // Reads are answered in order, and siw does not take one with a fence.
    let reads = matches!(request.operation, SendOperation::Read(_));
    flags.set(WqeFlags::READ_FENCE, request.fence && !reads);
    let mut element = Sqe::new_zeroed();
    element.id = request.number;
    // Others are refused before they come here.
    element.opcode = opcode(&request.operation).unwrap_or(Opcode::SEND);
    if let Some(remote) = request.operation.remote() {
        element.remote_address = remote.address();
        element.rkey = remote.key();
    }
    if let SendOperation::SendWithInvalidate(key) = request.operation {
        element.rkey = key;
    }
    match request.payload {
        SlotPayload::SgList(sg_list) => {
            element.sge_count = copy(sg_list, &mut element.sges);
            if element.sge_count == 1 && !reads && is_short(&element.sges) {
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
                // No more than there is room for.
                first.length = u32::try_from(length).unwrap_or(u32::MAX);
            }
        }
    }
    (element, flags)
}

/// Whether siw would copy the only piece behind the message's header (`siw_try_1seg`),
/// which goes wrong. From two pages it takes the wrong bytes. And it takes them from the
/// poster's address space until `siw_post_send` returns, although its own thread, which
/// has no such, may be sending by then: siw leaves the rest to that after a hundred
/// requests, and when TCP is full. The request then fails, and the connection with it.
/// An empty piece behind the only one keeps siw from that; being the last, it is never
/// looked at (`siw_tx_hdt`).
fn is_short(sg_list: &[AbiSge]) -> bool {
    /// The room behind a header (`MAX_HDR_INLINE`).
    const ROOM: u32 = 32;
    sg_list.first().is_some_and(|sge| sge.length <= ROOM)
}
